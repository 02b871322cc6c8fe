// Symbolic parity and traffic, one cell a line.
//
// A line of standard input, by words: kind (half or single), weights a group,
// bits, M, N, K, the tiled kernel and its grid (3), the narrow kernel and its
// grid at M = 1 (3). A line of standard output for each, in JSON: outputs,
// equal ones, the first difference, what each kernel read and how often it
// stored. The one argument is the CPU time a cell may take, in seconds.

#include "symbolic.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "deadline.h"
#include "kernel_run.h"

namespace overlay::symbolic {

const char* device_begin = nullptr;
const char* device_end = nullptr;

namespace {

struct Expression {
  Op op;
  Kind kind;
  Node a, b, c;

  bool operator==(const Expression& other) const {
    return op == other.op && kind == other.kind && a == other.a &&
        b == other.b && c == other.c;
  }
};

// Equal expressions are one node: an open-addressing index over the nodes.
struct Table {
  std::vector<Expression> nodes;
  std::vector<Node> slots; // a power of two of them; 0 where free

  static size_t hash(const Expression& e) {
    uint64_t h = (uint64_t(e.op) << 8) | uint64_t(e.kind);
    for (uint64_t part : {e.a, e.b, e.c}) {
      h = (h ^ part) * 0x9e3779b97f4a7c15;
      h ^= h >> 29;
    }
    return h;
  }

  Node& slot(const Expression& e) {
    size_t at = hash(e) & (slots.size() - 1);
    while (slots[at] && !(nodes[slots[at]] == e)) {
      at = (at + 1) & (slots.size() - 1);
    }
    return slots[at];
  }

  void clear() {
    nodes.assign(1, Expression{Op::zero, Kind::none, 0, 0, 0});
    slots.assign(1 << 16, 0);
  }

  Node add(const Expression& e) {
    if (Node known = slot(e)) {
      return known;
    }
    if (nodes.size() * 2 > slots.size()) {
      slots.assign(slots.size() * 2, 0);
      for (Node node = 1; node < nodes.size(); node++) {
        slot(nodes[node]) = node;
      }
    }
    slot(e) = Node(nodes.size());
    nodes.push_back(e);
    return Node(nodes.size() - 1);
  }
};

Table& table() {
  static Table table;
  return table;
}

} // namespace

Node intern(Op op, Kind kind, Node a, Node b, Node c) {
  Table& t = table();
  // Locals without a value hold a pattern (-ftrivial-auto-var-init) that is no
  // node. Constants and inputs carry data, not nodes.
  const bool leaf = op == Op::literal || op == Op::input;
  const size_t known = t.nodes.size();
  if (!leaf && (a >= known || b >= known || c >= known)) {
    fail("the kernel reads a local variable that has no value");
  }
  return t.add(Expression{op, kind, a, b, c});
}

Node literal(Kind kind, double value) {
  if (value == 0 && !std::signbit(value)) {
    return 0;
  }
  uint64_t bits;
  std::memcpy(&bits, &value, 8);
  return intern(Op::literal, kind, Node(bits >> 32), Node(bits));
}

bool literal_value(Node node, double& value) {
  if (node >= table().nodes.size()) {
    fail("the kernel reads a local variable that has no value");
  }
  const Expression& e = table().nodes[node];
  if (e.op != Op::literal && e.op != Op::zero) {
    return false;
  }
  const uint64_t bits = (uint64_t(e.a) << 32) | e.b;
  std::memcpy(&value, &bits, 8);
  return true;
}

namespace {

const char* name_of(Op op) {
  static const char* names[] = {
      "0",          "input",       "literal",     "add",        "sub",
      "mul",        "div",         "fma",         "fms",        "fnma",
      "neg",        "widen",       "narrow",      "from_int",   "word",
      "bit_and",    "bit_or",      "shift_left",  "shift_right", "int_add",
      "int_mul",    "lane",        "simd_sum"};
  return names[int(op)];
}

// An expression down to a depth, as text.
std::string text(Node node, int depth) {
  const Expression& e = table().nodes[node];
  static const char* roles[] = {"w", "scales", "biases", "x", "y"};
  double value;
  if (e.op == Op::input) {
    return std::string(roles[e.a]) + "[" + std::to_string(e.b) + "]";
  }
  if (literal_value(node, value)) {
    std::ostringstream out;
    out << value;
    return out.str();
  }
  if (depth == 0) {
    return std::string(name_of(e.op)) + "(...)";
  }
  std::string result = std::string(name_of(e.op)) + "(" + text(e.a, depth - 1);
  const bool two = e.op != Op::neg && e.op != Op::widen && e.op != Op::narrow &&
      e.op != Op::from_int && e.op != Op::simd_sum;
  if (two) {
    result += ", " + text(e.b, depth - 1);
  }
  if (e.op == Op::fma || e.op == Op::fms || e.op == Op::fnma) {
    result += ", " + text(e.c, depth - 1);
  }
  return result + ")";
}

// Where two expressions part: the innermost pair on the way down that differs
// in its operation or in more than one operand.
std::string difference(Node got, Node expected) {
  for (;;) {
    const Expression& a = table().nodes[got];
    const Expression& b = table().nodes[expected];
    const bool leaf = a.op == Op::input || a.op == Op::literal;
    const int differing = (a.a != b.a) + (a.b != b.b) + (a.c != b.c);
    if (a.op != b.op || a.kind != b.kind || leaf || differing == 0 ||
        (differing > 1 && a.op != Op::lane)) {
      return text(got, 3) + " where qmv has " + text(expected, 3);
    }
    if (a.a != b.a) {
      got = a.a;
      expected = b.a;
    } else if (a.b != b.b) {
      got = a.b;
      expected = b.b;
    } else {
      got = a.c;
      expected = b.c;
    }
  }
}

struct Traffic {
  uint64_t loads[kRoles] = {};
  uint64_t bytes[kRoles] = {};
  uint64_t distinct[kRoles] = {}; // bytes, an address once a simdgroup
  uint64_t stores = 0;
};

Traffic* counting = nullptr;
std::vector<uint64_t> last_reader; // of each node of device memory

// Who stored last there in this dispatch, and what.
struct Store {
  uint64_t simdgroup = 0; // 0 for nobody
  int lane = 0;
  Node value = 0;
};
std::vector<Store> last_store; // to each node of device memory

struct Range {
  const char* begin;
  const char* end;
};
Range ranges[kRoles];

// Device memory: the five buffers in one block, so that a foreign address is
// told by two comparisons. What lies behind y must stay as it is.
struct Memory {
  static constexpr size_t kGuard = 1 << 16;
  std::vector<char> block;
  Node* buffers[kRoles];
  size_t counts[kRoles];

  Memory(Kind kind, const size_t (&sizes)[kRoles]) {
    size_t total = 0;
    for (int role = 0; role < kRoles; role++) {
      counts[role] = sizes[role];
      total += (sizes[role] * sizeof(Node) + 63) / 64 * 64;
    }
    block.assign(total + 64 + kGuard, char(0xaa));
    auto at = reinterpret_cast<char*>(
        (reinterpret_cast<uintptr_t>(block.data()) + 63) / 64 * 64);
    device_begin = at;
    for (uint32_t role = 0; role < kRoles; role++) {
      buffers[role] = reinterpret_cast<Node*>(at);
      const Kind of = role == kWeights ? Kind::none : kind;
      for (uint32_t i = 0; i < sizes[role]; i++) {
        buffers[role][i] = intern(Op::input, of, role, i);
      }
      ranges[role] = {at, at + sizes[role] * sizeof(Node)};
      at += (sizes[role] * sizeof(Node) + 63) / 64 * 64;
    }
    device_end = at;
    last_reader.assign((device_end - device_begin) / sizeof(Node), 0);
  }

  // The outputs of a run: y as it is, which then holds inputs again.
  std::vector<Node> take_y(Kind kind) {
    std::vector<Node> y(buffers[kY], buffers[kY] + counts[kY]);
    for (uint32_t i = 0; i < counts[kY]; i++) {
      buffers[kY][i] = intern(Op::input, kind, kY, i);
    }
    return y;
  }

  bool stored_past_y() const {
    const char* end = ranges[kY].end;
    for (size_t i = 0; i < kGuard; i++) {
      if (end[i] != char(0xaa)) {
        return true;
      }
    }
    return false;
  }

  // The first input that is not what it was, or -1.
  int changed(Kind kind) const {
    for (uint32_t role = 0; role < kY; role++) {
      const Kind of = role == kWeights ? Kind::none : kind;
      for (uint32_t i = 0; i < counts[role]; i++) {
        if (buffers[role][i] != intern(Op::input, of, role, i)) {
          return int(role);
        }
      }
    }
    return -1;
  }
};

struct Cell {
  Kind kind;
  uint32_t group_size, bits, m, n, k;
  std::string kernel[2]; // tiled, narrow
  uint32_t grid[2][3];
};

void print(const char* name, const Traffic& t) {
  static const char* roles[] = {"w", "scales", "biases", "x"};
  std::printf(
      ",\"%s_stores\":%lu,\"%s\":{", name, (unsigned long)t.stores, name);
  for (int role = 0; role < kY; role++) {
    std::printf(
        "%s\"%s\":{\"loads\":%lu,\"bytes\":%lu,\"distinct\":%lu}",
        role ? "," : "",
        roles[role],
        (unsigned long)t.loads[role],
        (unsigned long)t.bytes[role],
        (unsigned long)t.distinct[role]);
  }
  std::printf("}");
}

// Runs one kernel over M vectors from x on.
std::string run(
    const Cell& cell,
    int which,
    const Memory& memory,
    uint32_t vector,
    uint32_t m,
    Traffic& traffic) {
  int k = int(cell.k), n = int(cell.n), vectors = int(m);
  void* buffers[31] = {
      memory.buffers[kWeights],
      memory.buffers[kScales],
      memory.buffers[kBiases],
      memory.buffers[kX] + size_t(vector) * cell.k,
      memory.buffers[kY],
      &k,
      &n,
      &vectors};
  const uint32_t group[3] = {32, 2, 1};
  counting = &traffic;
  last_store.assign(last_reader.size(), Store());
  const char* why = overlay_kernel_run(
      cell.kernel[which].c_str(), cell.grid[which], group, buffers, 31);
  counting = nullptr;
  return why ? cell.kernel[which] + ": " + why : "";
}

void judge(const Cell& cell) {
  table().clear();
  const size_t sizes[kRoles] = {
      size_t(cell.n) * cell.k * cell.bits / 8,
      size_t(cell.n) * cell.k / cell.group_size,
      size_t(cell.n) * cell.k / cell.group_size,
      size_t(cell.m) * cell.k,
      size_t(cell.m) * cell.n};
  Memory memory(cell.kind, sizes);
  Traffic tiled, narrow;
  std::string fault = run(cell, 0, memory, 0, cell.m, tiled);
  const std::vector<Node> y = memory.take_y(cell.kind);
  size_t equal = 0;
  for (uint32_t vector = 0; vector < cell.m && fault.empty(); vector++) {
    fault = run(cell, 1, memory, vector, 1, narrow);
    const std::vector<Node> alone = memory.take_y(cell.kind);
    for (uint32_t i = cell.n; i < alone.size() && fault.empty(); i++) {
      if (alone[i] != intern(Op::input, cell.kind, kY, i)) {
        fault = "qmv stored past the end of y";
      }
    }
    for (uint32_t i = 0; i < cell.n && fault.empty(); i++) {
      const Node got = y[size_t(vector) * cell.n + i];
      if (got == alone[i]) {
        equal++;
      } else {
        fault = "vector " + std::to_string(vector) + ", column " +
            std::to_string(i) + ": " + difference(got, alone[i]);
      }
    }
  }
  if (int role = memory.changed(cell.kind); fault.empty() && role >= 0) {
    fault = "a kernel wrote into its input, buffer " + std::to_string(role);
  }
  if (fault.empty() && memory.stored_past_y()) {
    fault = "a kernel stored past the end of y";
  }
  std::printf(
      "{\"outputs\":%zu,\"equal\":%zu,\"nodes\":%zu,\"fault\":\"%s\"",
      size_t(cell.m) * cell.n,
      equal,
      table().nodes.size(),
      fault.c_str());
  print("tiled", tiled);
  print("narrow", narrow);
  std::printf("}\n");
  std::fflush(stdout);
}

} // namespace

void count_load(const void* address, size_t bytes) {
  auto at = static_cast<const char*>(address);
  if (counting && at >= ranges[kY].begin) {
    fail("the kernel reads y, which it is to write");
  }
  for (int role = 0; counting && role < kRoles; role++) {
    if (at < ranges[role].begin || at >= ranges[role].end) {
      continue;
    }
    counting->loads[role]++;
    counting->bytes[role] += bytes;
    // A weight's byte is a node, and so is a whole value of the others.
    const size_t nodes = role == kWeights ? bytes : 1;
    uint64_t* last = &last_reader[(at - device_begin) / sizeof(Node)];
    for (size_t i = 0; i < nodes; i++) {
      if (last[i] != current_simdgroup()) {
        last[i] = current_simdgroup();
        counting->distinct[role] += bytes / nodes;
      }
    }
  }
}

void count_store(const void* address, Node value) {
  if (!counting) {
    return;
  }
  counting->stores++;
  auto at = static_cast<const char*>(address);
  Store& last = last_store[(at - device_begin) / sizeof(Node)];
  const Store now = {current_simdgroup(), current_lane(), value};
  const bool same_simdgroup = last.simdgroup == now.simdgroup;
  if (same_simdgroup && last.lane != now.lane) {
    fail("two lanes of a simdgroup store at one place");
  }
  // A last tile of rows that is moved back stores some again, but the same.
  if (last.simdgroup && !same_simdgroup && last.value != now.value) {
    fail("two simdgroups store two values at one place");
  }
  last = now;
}

} // namespace overlay::symbolic

int main(int count, char** arguments) {
  using namespace overlay::symbolic;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    Cell cell;
    std::string kind;
    words >> kind >> cell.group_size >> cell.bits >> cell.m >> cell.n >> cell.k;
    for (int i = 0; i < 2; i++) {
      words >> cell.kernel[i];
      for (uint32_t& extent : cell.grid[i]) {
        words >> extent;
      }
    }
    if (!words) {
      std::fprintf(stderr, "not a cell: %s\n", line.c_str());
      return 2;
    }
    cell.kind = kind == "half" ? Kind::half : Kind::single;
    overlay::allow(count > 1 ? arguments[1] : "0");
    judge(cell);
  }
}
