// Ends a program whose kernel does not end by itself.
#pragma once

#include <csignal>
#include <cstdlib>

#include <sys/time.h>
#include <unistd.h>

namespace overlay {

// From now on the program has so many seconds of CPU time, in words as its
// command line has them; "0" for as many as it takes.
inline void allow(const char* seconds) {
  std::signal(SIGVTALRM, [](int) {
    const char why[] = "ERROR: the kernel does not end\n";
    const ssize_t told = write(2, why, sizeof(why) - 1);
    _exit(told < 0 ? 4 : 3);
  });
  const itimerval timer = {{0, 0}, {std::atol(seconds), 0}};
  setitimer(ITIMER_VIRTUAL, &timer, nullptr);
}

} // namespace overlay
