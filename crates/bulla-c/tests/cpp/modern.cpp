// The C++ layer over bulla.h: what goes in comes out, exceptions by kind, and handles that close themselves. Run under sanitizers.
#include <bulla.hpp>

#include <filesystem>
#include <future>
#include <iostream>
#include <type_traits>

#define HOLDS(condition)                                                                \
  do {                                                                                  \
    if (!(condition)) {                                                                 \
      std::cerr << "line " << __LINE__ << ": " << #condition << " does not hold\n";     \
      return 1;                                                                         \
    }                                                                                   \
  } while (0)

template <typename Call>
static int status_of(Call &&call) {
  try {
    call();
    return BULLA_OK;
  } catch (const bulla::error &error) {
    return std::string(error.what()).empty() ? -1 : error.status();
  }
}

// Whether a name of this type can be added as a data subject.
template <typename Name, typename = void>
struct is_taken : std::false_type {};
template <typename Name>
struct is_taken<Name, std::void_t<decltype(std::declval<bulla::entry &>().subject(std::declval<Name>()))>>
    : std::true_type {};
static_assert(is_taken<const char *>::value && is_taken<std::string_view>::value && is_taken<std::string &>::value &&
              is_taken<const std::string &>::value);
// An entry would keep a view of what is gone.
static_assert(!is_taken<std::string>::value && !is_taken<const std::string>::value);

// A handle that other threads use for so long, and how many were closed.
static int in_use = 0, closed = 0;
static bulla_status close_one(int *) {
  if (in_use-- > 0) return BULLA_IN_USE;
  closed++;
  return BULLA_OK;
}

int main(int, char **argv) {
  const std::string directory = argv[1], path = argv[2];
  static_assert(!std::is_copy_constructible_v<bulla::log> && std::is_move_constructible_v<bulla::producer>);
  HOLDS(status_of([&] { bulla::log::open(directory); }) == BULLA_UNAVAILABLE);
  {
    int thing = 0;
    bulla::detail::owned<int, close_one> owned(&thing);
    in_use = 1;
    HOLDS(status_of([&] { owned.close(); }) == BULLA_IN_USE && owned.get() == &thing);
    owned.close();
    HOLDS(closed == 1 && owned.get() == nullptr);
    const bulla::detail::owned<int, close_one> left(&thing);
    in_use = 3;
  }
  HOLDS(closed == 2);
  const std::string key = bulla::log::create(directory, "example.com/cpp");
  HOLDS(status_of([&] { bulla::log::open(directory, "colour = 'red'"); }) == BULLA_INVALID);

  // C would take what is before a NUL for the whole.
  const std::string cut("\0x", 2);
  HOLDS(status_of([&] { bulla::log::create(directory + ".new" + cut); }) == BULLA_INVALID);
  HOLDS(status_of([&] { bulla::log::create(directory + ".new", "example.com" + cut); }) == BULLA_INVALID);
  HOLDS(!std::filesystem::exists(directory + ".new"));
  HOLDS(status_of([&] { bulla::log::open(directory + cut); }) == BULLA_INVALID);
  HOLDS(status_of([&] { bulla::log::open(directory, "linger = '1 ms'" + cut); }) == BULLA_INVALID);
  HOLDS(status_of([&] { bulla::log::open(directory, {}, directory + ".keys" + cut); }) == BULLA_INVALID);
  HOLDS(status_of([&] { bulla::reader::open(directory + cut); }) == BULLA_INVALID);
  HOLDS(status_of([&] { bulla::verify(directory, key + cut); }) == BULLA_INVALID);
  bulla::log log = bulla::log::open(directory, "linger = '1 ms'");
  HOLDS(status_of([&] { bulla::log::open(directory); }) == BULLA_LOCKED);
  bulla::producer producer = log.producer();
  using namespace std::string_view_literals;
  const auto time = std::chrono::system_clock::time_point(std::chrono::microseconds(1'700'000'000'000'001));
  bulla::entry whole("write", "a\0b"sv);
  whole.subject("ada").subject("bob");
  whole.controller = "c", whole.processor = "p", whole.purpose = "", whole.actor = "x", whole.client = "::1";
  whole.stream = "s", whole.payload = "\0"sv, whole.time = time, whole.duration = std::chrono::nanoseconds(5);
  whole.size = 0, whole.status = 7, whole.flags = 8;
  producer.append(whole);
  bulla::entry nobody;
  nobody.operation = "login", nobody.subjects.emplace();
  HOLDS(producer.try_append(nobody));
  std::size_t staged = 9;
  std::vector<bulla::entry> batch(1000, whole);
  producer.append_batch(batch, &staged);
  HOLDS(staged == 1000);
  batch[500].operation = "";
  HOLDS(status_of([&] { producer.append_batch(batch, &staged); }) == BULLA_INVALID && staged == 0);
  staged = 9;
  batch[500] = whole, batch[500].duration = std::chrono::nanoseconds(-1);
  HOLDS(status_of([&] { producer.append_batch(batch, &staged); }) == BULLA_INVALID && staged == 0);
  HOLDS(status_of([&] { producer.append(batch[500]); }) == BULLA_INVALID);
  HOLDS(status_of([&] { producer.try_append(batch[500]); }) == BULLA_INVALID);
  bulla::receipt receipt = producer.flush();
  receipt.durable();
  HOLDS(status_of([&] { (void)receipt.durable_within(std::chrono::milliseconds(-1)); }) == BULLA_INVALID);
  HOLDS(receipt.durable_within(std::chrono::seconds(0)));
  receipt.checkpointed();
  std::promise<bool> told;
  receipt.when_durable([&](std::optional<bulla::error> error) { told.set_value(!error); });
  HOLDS(told.get_future().get());
  HOLDS(status_of([&] { receipt.when_durable({}); }) == BULLA_INVALID);
  log.listen(path);
  {
    bulla::log elsewhere = bulla::log::connect(path);
    bulla::producer remote = elsewhere.producer();
    remote.append(bulla::entry("read", "remote"));
    remote.flush().durable();
    remote.close();
    elsewhere.close();
    HOLDS(status_of([&] { remote.append(bulla::entry("read", "x")); }) == BULLA_INVALID);
  }
  HOLDS(log.telemetry().front() == '{');
  bulla::producer moved = std::move(producer);
  moved.append(bulla::entry("read", "moved"));
  moved.close();
  log.close();
  HOLDS(status_of([&] { log.close(); }) == BULLA_INVALID);

  bulla::reader reader = bulla::reader::open(directory, key);
  int compared = 0;
  const auto all = reader.read(bulla::query(), [&](std::uint64_t number, const bulla::entry &entry) {
    if (number == 0)
      compared += entry.location == whole.location && entry.subjects == whole.subjects && entry.purpose == ""sv &&
                  entry.payload == whole.payload && entry.time == whole.time && entry.duration == whole.duration &&
                  entry.size == 0 && entry.status == 7 && entry.flags == 8 && entry.stream == "s"sv;
    if (number == 1) compared += entry.subjects && entry.subjects->empty() && !entry.location && !entry.payload;
  });
  HOLDS(all == 1004 && compared == 2);
  const bulla::query of_ada = bulla::query().subject("ada").begins_with("location", "a").from_to("status", 7, 7);
  HOLDS(reader.read(of_ada, [](auto, auto &) {}) == 1001);
  HOLDS(reader.read(bulla::query().from(time).to(time), [](auto, auto &) {}) == 0);
  HOLDS(status_of([&] { reader.read(bulla::query().is("colour", "red"), [](auto, auto &) {}); }) == BULLA_INVALID);
  HOLDS(status_of([&] { reader.read(bulla::query().is("actor" + cut, "x"), [](auto, auto &) {}); }) == BULLA_INVALID);
  const auto of_nobody = reader.not_found(bulla::query().subject("adda"));
  HOLDS(of_nobody.size() == 1 && of_nobody[0].find("`adda`") != std::string::npos && reader.not_found(bulla::query()).empty());
  // What a callback throws comes out where it was called.
  bool thrown = false;
  try {
    reader.read(bulla::query(), [](auto, auto &) { throw std::runtime_error("enough"); });
  } catch (const std::runtime_error &error) {
    thrown = std::string(error.what()) == "enough";
  }
  HOLDS(thrown);
  std::string lines;
  reader.export_json(of_ada, [&](std::string_view bytes) { lines.append(bytes); });
  HOLDS(lines.front() == '{' && lines.back() == '\n');
  std::string proof = reader.prove(of_ada);
  std::uint64_t disclosed = 0;
  const bulla::checked checked = bulla::check(proof, key, [&](auto, auto &) { disclosed++; });
  HOLDS(checked.anchored && checked.entries == 1001 && disclosed == 1001);
  HOLDS(!bulla::check(proof, {}).anchored);
  proof[proof.size() / 2] ^= 1;
  const int damaged = status_of([&] { bulla::check(proof, key); });
  HOLDS(damaged == BULLA_TAMPERED || damaged == BULLA_INVALID);
  proof[proof.size() / 2] ^= 1;
  bulla::trust trust;
  trust.key = key, trust.policy = "quorum none\n";
  HOLDS(bulla::check_by(proof, trust).anchored);
  trust.pin = directory + ".pin";
  HOLDS(status_of([&] { bulla::check_by(proof, trust); }) == BULLA_INVALID);
  bulla::verified verified = bulla::verify_by(directory, trust);
  HOLDS(verified.ok && verified.anchored && verified.pin_made && verified.pinned == verified.tree_size);
  verified = bulla::verify_by(directory, trust);
  HOLDS(verified.ok && !verified.pin_made && verified.pinned_before == verified.pinned && verified.witnessed == 0);
  // A pin that cannot be made takes nothing of what was found.
  trust.pin = directory + ".other.pin";
  std::filesystem::create_directory(trust.pin + ".lock");
  bool still_told = false;
  try {
    bulla::verify_by(directory, trust);
  } catch (const bulla::pin_error &failed) {
    still_told = failed.status() == BULLA_UNAVAILABLE && failed.found().ok && failed.found().tree_size == verified.tree_size;
  }
  HOLDS(still_told);
  trust.policy = "quorum nobody\n";
  HOLDS(status_of([&] { bulla::verify_by(directory, trust); }) == BULLA_INVALID);
  HOLDS(status_of([&] { bulla::verify_by(directory, {key}, directory + ".typo"); }) == BULLA_REFUSED);
  HOLDS(status_of([&] { bulla::verify(directory, key, directory + ".typo"); }) == BULLA_REFUSED);
  HOLDS(bulla::verify(directory, key, directory + ".keys").ok);
  HOLDS(reader.not_as_logged(bulla::query().subject("ada")).empty());
  const bulla::report report = bulla::verify(directory, key);
  HOLDS(report.ok && report.anchored && report.entries == 1004);
  std::cout << "all of it holds\n";
}
