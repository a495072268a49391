// Appends to a log from two threads, reads one person's entries back, and proves them to whoever has the log's public key.
//   c++ -std=c++17 demo.cpp $(pkg-config --cflags --libs bulla) -pthread -o demo && ./demo audit
#include <bulla.hpp>

#include <iostream>
#include <thread>

int main(int argc, char **argv) try {
  const std::string directory = argc > 1 ? argv[1] : "audit";
  const std::string key = bulla::log::create(directory, "example.com/demo-cpp");
  std::cout << "verify with: bulla verify " << directory << " --key " << key << "\n";

  bulla::log log = bulla::log::open(directory);
  const auto work = [&log](int worker) {
    bulla::producer producer = log.producer();
    for (int number = worker; number < 100000; number += 2) {
      const std::string subject = "user_" + std::to_string(number % 1000), location = subject + "/email";
      bulla::entry entry("read", location);
      entry.subject(subject).purpose = "fulfilling a request";
      producer.append(entry);
    }
    producer.flush().durable();
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  log.close();

  const bulla::reader reader = bulla::reader::open(directory, key);
  const bulla::query of_one = bulla::query().subject("user_42");
  std::cout << reader.read(of_one, [](auto, auto &) {}) << " entries of user_42\n";
  const std::string proof = reader.prove(of_one);
  const bulla::checked checked = bulla::check(proof, key);
  std::cout << "proven with " << proof.size() << " bytes: " << checked.entries << " entries, "
            << (checked.anchored ? "signed by the log" : "signed by nobody that is known") << "\n";
  const auto all = reader.read(bulla::query(), [](auto, auto &) {});
  std::cout << "100000 entries went in, " << all << " came back\n";
  return all != 100000;
} catch (const std::exception &exception) {
  std::cerr << exception.what() << "\n";
  return 1;
}
