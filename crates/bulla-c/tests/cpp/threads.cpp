// A log is closed by one thread while others use it: to be run under the thread sanitizer.
#include <bulla.hpp>

#include <iostream>

int main(int, char **argv) {
  bulla::log::create(argv[1]);
  bulla::log log = bulla::log::open(argv[1]);
  std::vector<std::thread> others;
  std::atomic<int> begun = 0, refused = 0;
  for (int i = 0; i < 2; i++)
    others.emplace_back([&] {
      try {
        for (;;) {
          log.flush();
          begun++;
        }
      } catch (const bulla::error &error) {
        if (error.status() == BULLA_INVALID || error.status() == BULLA_CLOSED) refused++;
      }
    });
  while (begun < 2) std::this_thread::yield();
  log.close();
  for (std::thread &other : others) other.join();
  std::cout << refused << " were refused\n";
}
