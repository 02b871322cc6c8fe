// A kernel library as a program: dispatches on standard input, results on
// standard output. src/runner.rs is the other side.
//
// Request:  u32 name bytes, name, u32 grid[3], u32 group[3], u32 sweep (0
//           ascending, 1 descending), u32 buffers, then for each u32 index,
//           u32 is_output, u64 bytes, contents.
// Response: u32 0 and the outputs' contents in their order, or
//           u32 1, u32 bytes, the reason.
//
// The one argument is the CPU time a dispatch may take, in seconds.
//
// Each buffer is a heap block of exactly its size: with AddressSanitizer a read
// or a write past it ends the program. A write to an input is found here.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "deadline.h"
#include "registry.h"

namespace {

struct Buffer {
  uint32_t index;
  uint32_t is_output;
  uint64_t bytes;
  char* contents;
  std::vector<char> sent;
};

void read_all(void* into, size_t bytes) {
  if (std::fread(into, 1, bytes, stdin) != bytes) {
    std::exit(2);
  }
}

uint32_t read_word() {
  uint32_t word;
  read_all(&word, 4);
  return word;
}

void write_word(uint32_t word) {
  std::fwrite(&word, 4, 1, stdout);
}

void serve(uint32_t name_bytes, const char* seconds) {
  std::string name(name_bytes, ' ');
  read_all(name.data(), name_bytes);
  uint32_t grid[3], group[3];
  read_all(grid, sizeof(grid));
  read_all(group, sizeof(group));
  const auto sweep = overlay::Sweep(read_word());
  std::vector<Buffer> buffers(read_word());
  void* pointers[31] = {};
  for (Buffer& buffer : buffers) {
    buffer.index = read_word();
    buffer.is_output = read_word();
    read_all(&buffer.bytes, 8);
    buffer.contents = static_cast<char*>(std::malloc(buffer.bytes));
    read_all(buffer.contents, buffer.bytes);
    buffer.sent.assign(buffer.contents, buffer.contents + buffer.bytes);
    if (buffer.index >= 31) {
      std::exit(2);
    }
    pointers[buffer.index] = buffer.contents;
  }

  overlay::allow(seconds);
  const char* run =
      overlay::run_kernel(name.c_str(), grid, group, pointers, 31, sweep);
  overlay::allow("0");
  std::string why = run ? run : "";
  for (const Buffer& buffer : buffers) {
    if (!buffer.is_output &&
        std::memcmp(buffer.contents, buffer.sent.data(), buffer.bytes) != 0) {
      why = "the kernel wrote into its input, buffer " +
          std::to_string(buffer.index);
    }
  }

  write_word(why.empty() ? 0 : 1);
  if (why.empty()) {
    for (const Buffer& buffer : buffers) {
      if (buffer.is_output) {
        std::fwrite(buffer.contents, 1, buffer.bytes, stdout);
      }
    }
  } else {
    write_word(uint32_t(why.size()));
    std::fwrite(why.data(), 1, why.size(), stdout);
  }
  std::fflush(stdout);
  for (Buffer& buffer : buffers) {
    std::free(buffer.contents);
  }
}

} // namespace

int main(int count, char** arguments) {
  const char* seconds = count > 1 ? arguments[1] : "0";
  uint32_t name_bytes;
  while (std::fread(&name_bytes, 4, 1, stdin) == 1) {
    serve(name_bytes, seconds);
  }
}
