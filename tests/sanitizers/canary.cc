// canary FAULT: a program with one fault, which the sanitizers of ./dev asan or ./dev tsan must catch; so
// that a suite without a finding means something.
#include <climits>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <thread>

namespace {

int* volatile kept = nullptr;
volatile int one = 1;

int overflow() {
  kept = new int[4]();
  const int value = kept[3 + one];
  delete[] kept;
  return value;
}

int leak() {
  kept = new int[4]();
  kept = nullptr;
  return 0;
}

int integer() { return INT_MAX + one; }

int race() {
  int value = 0;
  std::thread other([&] { ++value; });
  ++value;
  other.join();
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<int()>> faults = {
      {"overflow", overflow}, {"leak", leak}, {"integer", integer}, {"race", race}};
  const auto fault = faults.find(argc > 1 ? argv[1] : "");
  if (fault == faults.end()) return 2;
  std::printf("not caught: %d\n", fault->second());
  return 0;
}
