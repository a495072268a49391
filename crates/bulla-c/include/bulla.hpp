// The Bulla audit log, for C++17: bulla.h with values that close themselves, and exceptions. Header only; link with the library for C.
// docs/cpp.md is the reference.
//
// Views (`std::string_view`) that are given to it need to live as long as the call, and those that a callback gets are gone when it returns.
#ifndef BULLA_HPP
#define BULLA_HPP

#include "bulla.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace bulla {

// What a call failed for: what() says it in words, status() what to do about it.
class error : public std::runtime_error {
 public:
  error(bulla_status status, const std::string &message) : std::runtime_error(message), status_(status) {}
  bulla_status status() const noexcept { return status_; }

 private:
  bulla_status status_;
};

namespace detail {

inline void check(bulla_status status) {
  if (status != BULLA_OK) throw error(status, bulla_message());
}

inline bulla_bytes bytes(std::string_view view) {
  // Empty is something else than absent, and a view of nothing may have no address.
  return {view.data() == nullptr ? "" : view.data(), view.size()};
}

inline bulla_bytes bytes_or_none(const std::optional<std::string_view> &view) {
  return view ? bytes(*view) : bulla_bytes{nullptr, 0};
}

inline std::optional<std::string_view> view(bulla_bytes bytes) {
  if (bytes.data == nullptr) return std::nullopt;
  return std::string_view(bytes.data, bytes.size);
}

// A time that must not be negative, as a number.
template <typename Duration>
std::uint64_t not_negative(Duration time, const char *name) {
  if (time < Duration::zero()) throw error(BULLA_INVALID, std::string("`") + name + "` is negative");
  return static_cast<std::uint64_t>(time.count());
}

// A text for C, for which it ends at the first NUL: one that goes on behind that is refused.
inline const char *text(const std::string &text, const char *name) {
  if (text.find('\0') != std::string::npos) throw error(BULLA_INVALID, std::string("`") + name + "` has a NUL in it");
  return text.c_str();
}

inline const char *text_or_null(const std::string &from, const char *name) {
  return from.empty() ? nullptr : text(from, name);
}

// A handle that closes itself. What closing it fails for is lost then: call close(), which one thread may do while others use it.
template <typename Handle, bulla_status (*Close)(Handle *)>
class owned {
 public:
  explicit owned(Handle *handle = nullptr) noexcept : handle_(handle) {}
  owned(owned &&other) noexcept : handle_(other.handle_.exchange(nullptr)) {}
  owned &operator=(owned &&other) noexcept {
    if (this != &other) {
      discard();
      handle_ = other.handle_.exchange(nullptr);
    }
    return *this;
  }
  owned(const owned &) = delete;
  owned &operator=(const owned &) = delete;
  ~owned() { discard(); }

  Handle *get() const noexcept { return handle_; }
  void close() {
    Handle *const handle = handle_.exchange(nullptr);
    const bulla_status status = Close(handle);
    // Then it is as it was.
    if (status == BULLA_IN_USE) handle_ = handle;
    check(status);
  }

 private:
  // Nobody has it afterwards, so it is closed once no other thread uses it any more.
  void discard() noexcept {
    Handle *const handle = handle_.exchange(nullptr);
    while (handle != nullptr && Close(handle) == BULLA_IN_USE) std::this_thread::yield();
  }

  std::atomic<Handle *> handle_;
};

// What a function of C calls back, given `run` and the address of this; and what it threw, carried over that function.
template <typename Call>
class carrier {
 public:
  explicit carrier(Call call) : call_(std::move(call)) {}
  template <typename... Given>
  static int run(void *context, Given... given) noexcept {
    auto &to = *static_cast<carrier *>(context);
    try {
      to.call_(given...);
      return 0;
    } catch (...) {
      to.thrown_ = std::current_exception();
      return 1;
    }
  }
  void finish(bulla_status status) const {
    if (thrown_) std::rethrow_exception(thrown_);
    check(status);
  }

 private:
  Call call_;
  std::exception_ptr thrown_;
};

}  // namespace detail

// One record of one operation on somebody's data, of views: what they see has to live until it is appended.
struct entry {
  entry() = default;
  entry(std::string_view what, std::string_view where) : operation(what), location(where) {}

  std::string_view operation;
  std::optional<std::string_view> location;
  std::optional<std::vector<std::string_view>> subjects;
  std::optional<std::string_view> controller, processor, purpose, actor, client, stream, payload;
  std::optional<std::chrono::system_clock::time_point> time;
  std::optional<std::chrono::nanoseconds> duration;
  std::optional<std::uint64_t> size;
  std::optional<std::uint32_t> status, flags;
  // Of an entry that is read: why it comes without its personal fields. Nothing of one that is appended.
  bulla_withheld withheld = BULLA_NOT_WITHHELD;

  // Adds a data subject. A text that is gone at the end of the line is not taken: only a view of it would be kept.
  entry &subject(std::string_view name) {
    if (!subjects) subjects.emplace();
    subjects->push_back(name);
    return *this;
  }
  entry &subject(const char *name) { return subject(std::string_view(name)); }
  entry &subject(const std::string &&name) = delete;
};

namespace detail {

// An entry as C has it, and room for its data subjects, so that one is made of many entries without allocating for each.
class converted {
 public:
  const bulla_entry *of(const entry &entry) {
    subjects_.clear();
    append(entry, subjects_);
    return &made_;
  }

  // `subjects` has room for the entry's, so that what it has stays where it is.
  const bulla_entry &append(const entry &entry, std::vector<bulla_bytes> &subjects) {
    made_ = {};
    made_.operation = bytes(entry.operation);
    made_.location = bytes_or_none(entry.location);
    made_.controller = bytes_or_none(entry.controller);
    made_.processor = bytes_or_none(entry.processor);
    made_.purpose = bytes_or_none(entry.purpose);
    made_.actor = bytes_or_none(entry.actor);
    made_.client = bytes_or_none(entry.client);
    made_.stream = bytes_or_none(entry.stream);
    made_.payload = bytes_or_none(entry.payload);
    if (entry.subjects) {
      const std::size_t first = subjects.size();
      for (std::string_view subject : *entry.subjects) subjects.push_back(bytes(subject));
      static const bulla_bytes none{nullptr, 0};
      made_.subjects = entry.subjects->empty() ? &none : subjects.data() + first;
      made_.subject_count = entry.subjects->size();
    }
    if (entry.time) number(made_.time, std::chrono::nanoseconds(entry.time->time_since_epoch()).count(), BULLA_HAS_TIME);
    if (entry.duration) number(made_.duration, not_negative(*entry.duration, "duration"), BULLA_HAS_DURATION);
    if (entry.size) number(made_.size, *entry.size, BULLA_HAS_SIZE);
    if (entry.status) number(made_.status, *entry.status, BULLA_HAS_STATUS);
    if (entry.flags) number(made_.flags, *entry.flags, BULLA_HAS_FLAGS);
    made_.withheld = entry.withheld;
    return made_;
  }

 private:
  template <typename Field, typename Value>
  void number(Field &field, Value value, std::uint32_t bit) {
    field = static_cast<Field>(value);
    made_.has |= bit;
  }

  bulla_entry made_{};
  std::vector<bulla_bytes> subjects_;
};

inline entry entry_of(const bulla_entry &from) {
  entry made;
  made.operation = view(from.operation).value_or(std::string_view());
  made.location = view(from.location);
  if (from.subjects != nullptr) {
    made.subjects.emplace();
    for (std::size_t i = 0; i < from.subject_count; i++)
      made.subjects->push_back(view(from.subjects[i]).value_or(std::string_view()));
  }
  made.controller = view(from.controller);
  made.processor = view(from.processor);
  made.purpose = view(from.purpose);
  made.actor = view(from.actor);
  made.client = view(from.client);
  made.stream = view(from.stream);
  made.payload = view(from.payload);
  using clock = std::chrono::system_clock;
  if (from.has & BULLA_HAS_TIME)
    made.time = clock::time_point(std::chrono::duration_cast<clock::duration>(std::chrono::nanoseconds(from.time)));
  if (from.has & BULLA_HAS_DURATION) {
    // One that is longer than 292 years comes as that.
    const auto longest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    made.duration = std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(from.duration, longest)));
  }
  if (from.has & BULLA_HAS_SIZE) made.size = from.size;
  if (from.has & BULLA_HAS_STATUS) made.status = from.status;
  if (from.has & BULLA_HAS_FLAGS) made.flags = from.flags;
  made.withheld = static_cast<bulla_withheld>(from.withheld);
  return made;
}

// What gives `each` an entry of C.
template <typename Each>
auto giving(Each &each) {
  return carrier([&each](std::uint64_t number, const bulla_entry *from) {
    const entry made = entry_of(*from);
    each(number, made);
  });
}

// What gives `each` bytes of C.
template <typename Each>
auto giving_bytes(Each &each) {
  return carrier([&each](bulla_bytes bytes) { each(std::string_view(bytes.data, bytes.size)); });
}

}  // namespace detail

// What a flush covered, and how far it has come. Any thread may use it.
class receipt {
 public:
  explicit receipt(bulla_receipt *handle) : handle_(handle) {}

  // Waits until the entries are durable.
  void durable() const { detail::check(bulla_receipt_wait(handle_.get())); }

  // The same, for so long at most: whether that was long enough. A negative time is refused.
  bool durable_within(std::chrono::milliseconds time) const {
    bool is_durable = false;
    const std::uint64_t milliseconds = detail::not_negative(time, "time");
    detail::check(bulla_receipt_poll(handle_.get(), milliseconds, &is_durable));
    return is_durable;
  }

  // Waits until a signed checkpoint covers the entries: a reader gives them from then on.
  void checkpointed() const { detail::check(bulla_receipt_checkpointed(handle_.get())); }

  // Calls `told` once, with what durable() fails for, if it does: from this thread or another. It must not throw, and waits for nothing of the log.
  // One that is empty is refused.
  void when_durable(std::function<void(std::optional<error>)> told) const {
    if (!told) throw error(BULLA_INVALID, "`told` is empty: there is nothing to call");
    auto kept = std::make_unique<std::function<void(std::optional<error>)>>(std::move(told));
    const auto call = [](void *context, bulla_status status, const char *message) {
      std::unique_ptr<std::function<void(std::optional<error>)>> given(
          static_cast<std::function<void(std::optional<error>)> *>(context));
      (*given)(status == BULLA_OK ? std::nullopt : std::optional<error>(error(status, message)));
    };
    detail::check(bulla_receipt_notify(handle_.get(), call, kept.get()));
    // From here on the callback has it.
    kept.release();
  }

 private:
  detail::owned<bulla_receipt, bulla_receipt_free> handle_;
};

// One thread's way into a log. Its entries keep their order.
class producer {
 public:
  explicit producer(bulla_producer *handle) : handle_(handle) {}

  // Stages an entry: copies it.
  void append(const entry &entry) { detail::check(bulla_append(handle_.get(), made_.of(entry))); }

  // The same without waiting for memory: false where there is none.
  bool try_append(const entry &entry) {
    const bulla_status status = bulla_try_append(handle_.get(), made_.of(entry));
    if (status == BULLA_TIMEOUT) return false;
    detail::check(status);
    return true;
  }

  // Stages entries one after the other, at one time where they have none. `staged` gets how many were, whatever it throws.
  template <typename Entries>
  void append_batch(const Entries &entries, std::size_t *staged = nullptr) {
    if (staged != nullptr) *staged = 0;
    std::size_t count = 0, subjects = 0;
    for (const entry &entry : entries) {
      count++;
      subjects += entry.subjects ? entry.subjects->size() : 0;
    }
    batch_.clear();
    subjects_.clear();
    batch_.reserve(count);
    subjects_.reserve(subjects);
    for (const entry &entry : entries) batch_.push_back(made_.append(entry, subjects_));
    detail::check(bulla_append_batch(handle_.get(), batch_.data(), batch_.size(), staged));
  }

  // Has everything that was appended written without waiting for more.
  receipt flush() {
    bulla_receipt *made = nullptr;
    detail::check(bulla_producer_flush(handle_.get(), &made));
    return receipt(made);
  }

  void close() { handle_.close(); }

 private:
  detail::owned<bulla_producer, bulla_producer_close> handle_;
  detail::converted made_;
  std::vector<bulla_entry> batch_;
  std::vector<bulla_bytes> subjects_;
};

// A log that is open for appending. Any thread may use it.
class log {
 public:
  // Makes an empty log: its public key. Without recipients a local identity is made, in the key directory.
  static std::string create(const std::string &directory, const std::string &origin = {},
                            const std::vector<std::string> &recipients = {}, const std::string &keys = {}) {
    std::vector<const char *> list;
    for (const std::string &recipient : recipients) list.push_back(detail::text(recipient, "recipients"));
    char key[BULLA_KEY_SIZE];
    detail::check(bulla_create(detail::text(directory, "directory"), detail::text_or_null(keys, "keys"),
                               detail::text_or_null(origin, "origin"), list.data(), list.size(), key, sizeof key));
    return key;
  }

  // Opens a log. `settings` is text in TOML, with the names that `bulla config` has, and counts for this process alone:
  // `"memory = '128 MiB'\nlinger = '20 ms'"`.
  static log open(const std::string &directory, const std::string &settings = {}, const std::string &keys = {}) {
    bulla_log *made = nullptr;
    detail::check(bulla_open(BULLA_ABI_VERSION, detail::text(directory, "directory"), detail::text_or_null(keys, "keys"),
                             detail::text_or_null(settings, "settings"), &made));
    return log(made);
  }

  // Connects to a log that another process has open, and listens for at `path`. Each producer of it is a client there.
  static log connect(const std::string &path) {
    bulla_log *made = nullptr;
    detail::check(bulla_connect(BULLA_ABI_VERSION, detail::text(path, "path"), &made));
    return log(made);
  }

  // Listens for entries of other processes until it is closed, at a socket of mode 0600. Each producer of a connection counts as
  // one of the `clients` (0: 64).
  void listen(const std::string &path, std::size_t clients = 0) {
    detail::check(bulla_listen(handle_.get(), detail::text(path, "path"), clients));
  }

  bulla::producer producer() const {
    bulla_producer *made = nullptr;
    detail::check(bulla_producer_open(handle_.get(), &made));
    return bulla::producer(made);
  }

  // Commits everything that any producer has appended, and signs a checkpoint over it.
  void flush() { detail::check(bulla_flush(handle_.get())); }

  // What was counted, as a JSON object.
  std::string telemetry() const {
    std::string json;
    const auto copy = [](void *context, bulla_bytes bytes) {
      static_cast<std::string *>(context)->assign(bytes.data, bytes.size);
      return 0;
    };
    detail::check(bulla_telemetry(handle_.get(), copy, &json));
    return json;
  }

  // Everything is written, synced and signed: it throws where that is not so. Without it the destructor closes, and nobody is told.
  void close() { handle_.close(); }

 private:
  explicit log(bulla_log *handle) : handle_(handle) {}
  detail::owned<bulla_log, bulla_close> handle_;
};

// Which entries are asked for: of several conditions on one field either, of several fields all.
class query {
 public:
  query &is(std::string field, std::string value) { return add(std::move(field), BULLA_IS, std::move(value)); }
  query &begins_with(std::string field, std::string value) {
    return add(std::move(field), BULLA_BEGINS_WITH, std::move(value));
  }
  query &from_to(std::string field, std::uint64_t first, std::uint64_t last) {
    return add(std::move(field), BULLA_FROM_TO, {}, first, last);
  }
  query &subject(std::string name) { return is("subject", std::move(name)); }
  query &from(std::chrono::system_clock::time_point time) {
    from_ = time;
    return *this;
  }
  query &to(std::chrono::system_clock::time_point time) {
    to_ = time;
    return *this;
  }

  // Calls `use` with the query as C has it.
  template <typename Use>
  auto with(Use &&use) const {
    std::vector<bulla_condition> conditions;
    for (const condition &asked : conditions_)
      conditions.push_back({detail::text(asked.field, "field"), static_cast<std::uint32_t>(asked.comparison),
                            detail::bytes(asked.value), asked.first, asked.last});
    bulla_query made{};
    made.conditions = conditions.data();
    made.condition_count = conditions.size();
    const auto nanoseconds = [](auto time) {
      return static_cast<std::int64_t>(std::chrono::nanoseconds(time.time_since_epoch()).count());
    };
    if (from_) made.from = nanoseconds(*from_), made.has |= BULLA_HAS_FROM;
    if (to_) made.to = nanoseconds(*to_), made.has |= BULLA_HAS_TO;
    return use(&made);
  }

 private:
  struct condition {
    std::string field;
    bulla_comparison comparison;
    std::string value;
    std::uint64_t first, last;
  };

  query &add(std::string field, bulla_comparison comparison, std::string value, std::uint64_t first = 0,
             std::uint64_t last = 0) {
    conditions_.push_back({std::move(field), comparison, std::move(value), first, last});
    return *this;
  }

  std::vector<condition> conditions_;
  std::optional<std::chrono::system_clock::time_point> from_, to_;
};

// What a proof shows that holds.
struct checked {
  bool anchored;
  std::uint64_t entries, withheld, tree_size;
};

// Checks a proof with the log's public key alone; `each` gets the number and the entry of what it discloses. It throws `BULLA_TAMPERED` where
// the proof does not hold, and `BULLA_INVALID` where it cannot be read, as one may be of which a byte was changed: neither holds.
template <typename Each>
checked check(std::string_view proof, const std::string &key, Each &&each) {
  auto to = detail::giving(each);
  bulla_checked shown{};
  to.finish(bulla_check(detail::bytes(proof), detail::text_or_null(key, "key"), decltype(to)::run, &to, &shown));
  return {shown.anchored, shown.entries, shown.withheld, shown.tree_size};
}

inline checked check(std::string_view proof, const std::string &key) {
  return check(proof, key, [](std::uint64_t, const entry &) {});
}

// By what a log, or a proof of one, is believed: a key, the text of a policy (C2SP tlog-policy), and of a log that is verified the path of a
// pin. What is empty is not given.
struct trust {
  std::string key = {}, policy = {}, pin = {};
};

namespace detail {

// The same for C, as long as `by` lives.
inline bulla_trust trusted(const trust &by) {
  bulla_trust made{};
  made.key = text_or_null(by.key, "key");
  if (!by.policy.empty()) {
    made.policy = bytes(by.policy);
  }
  made.pin = text_or_null(by.pin, "pin");
  return made;
}

}  // namespace detail

// The same by a key, a policy or both.
template <typename Each>
checked check_by(std::string_view proof, const trust &by, Each &&each) {
  auto to = detail::giving(each);
  bulla_checked shown{};
  const bulla_trust trusted = detail::trusted(by);
  to.finish(bulla_check_by(detail::bytes(proof), &trusted, decltype(to)::run, &to, &shown));
  return {shown.anchored, shown.entries, shown.withheld, shown.tree_size};
}

inline checked check_by(std::string_view proof, const trust &by) {
  return check_by(proof, by, [](std::uint64_t, const entry &) {});
}

// What a verification found; `findings` has a line of text for each.
struct report {
  bool ok, anchored;
  std::uint64_t entries, blocks, tree_size, pending;
  std::vector<std::string> findings;
};

// What a verification by more than a key found.
struct verified : report {
  // Frames that are witnessed as the policy asks for, and that the pin covered before and covers now; 0 for none.
  std::uint64_t witnessed, pinned_before, pinned;
  // Whether there was no pin, and it was made.
  bool pin_made;
};

// The log was verified, and its pin could not be made or advanced, which what() tells: found() is what was found of the log, which may be sound all the same.
class pin_error : public error {
 public:
  pin_error(bulla_status status, const std::string &message, verified found)
      : error(status, message), found_(std::make_shared<const verified>(std::move(found))) {}
  const verified &found() const noexcept { return *found_; }

 private:
  // Copying an exception must not throw.
  std::shared_ptr<const verified> found_;
};

// The same by a key, a policy, a pin, or several of them; the pin is advanced where no violation is found, and made where there is none. Throws `pin_error`
// where that could not be done. `keys` is where the log's keys are, which tell on which paths it lies besides: by default the directory's name and `.keys`.
inline verified verify_by(const std::string &directory, const trust &by, const std::string &keys = {}) {
  verified made{};
  bulla_verified shown{};
  const auto add = [](void *context, bulla_bytes line) {
    static_cast<std::vector<std::string> *>(context)->emplace_back(line.data, line.size);
    return 0;
  };
  const bulla_trust trusted = detail::trusted(by);
  const bulla_status status = bulla_verify_with_keys(detail::text(directory, "directory"), detail::text_or_null(keys, "keys"),
                                                     &trusted, add, &made.findings, &shown);
  if (!shown.pin_failed) detail::check(status);
  made.ok = shown.report.ok, made.anchored = shown.report.anchored, made.entries = shown.report.entries;
  made.blocks = shown.report.blocks, made.tree_size = shown.report.tree_size, made.pending = shown.report.pending;
  made.witnessed = shown.witnessed, made.pinned_before = shown.pinned_before, made.pinned = shown.pinned;
  made.pin_made = shown.pin_made;
  if (shown.pin_failed) throw pin_error(status, bulla_message(), std::move(made));
  return made;
}

// Verifies a log with public data alone. Without a key it can only be told to agree with itself. `keys` as `verify_by` has it.
inline report verify(const std::string &directory, const std::string &key = {}, const std::string &keys = {}) {
  trust by;
  by.key = key;
  return verify_by(directory, by, keys);
}

// What reads a log: entries that a signed checkpoint covers. Any thread may use it.
class reader {
 public:
  // `key` is the public key that the log must be of.
  static reader open(const std::string &directory, const std::string &key = {}, const std::string &keys = {}) {
    bulla_reader *made = nullptr;
    detail::check(bulla_reader_open(BULLA_ABI_VERSION, detail::text(directory, "directory"),
                                    detail::text_or_null(keys, "keys"), detail::text_or_null(key, "key"), &made));
    return reader(made);
  }

  // Calls `each` with the number and the entry of everything that is asked for, in order; how many there were. It throws
  // `BULLA_TAMPERED`, once all were given, where keys are lost that the log does not say were erased.
  template <typename Each>
  std::uint64_t read(const query &query, Each &&each) const {
    auto to = detail::giving(each);
    std::uint64_t count = 0;
    to.finish(query.with([&](const bulla_query *made) { return bulla_read(handle_.get(), made, decltype(to)::run, &to, &count); }));
    return count;
  }

  // Of a query that found nothing: a line for each data subject that it asks for by name, which says what can be said of it.
  std::vector<std::string> not_found(const query &query) const {
    std::vector<std::string> lines;
    bytes_to(bulla_not_found, query, [&](std::string_view line) { lines.emplace_back(line); });
    return lines;
  }

  // Of a query, whatever it finds: a line for each field that it asks for in a form that the log's rules leave of no value, which says what to ask for instead.
  std::vector<std::string> not_as_logged(const query &query) const {
    std::vector<std::string> lines;
    bytes_to(bulla_not_as_logged, query, [&](std::string_view line) { lines.emplace_back(line); });
    return lines;
  }

  // Gives `write` lines of JSON, as `bulla export` writes them.
  template <typename Write>
  void export_json(const query &query, Write &&write) const {
    bytes_to(bulla_export, query, std::forward<Write>(write));
  }

  // A proof of everything that is asked for, for whoever has the log's public key alone.
  std::string prove(const query &query) const {
    std::string proof;
    bytes_to(bulla_prove, query, [&](std::string_view bytes) { proof.append(bytes); });
    return proof;
  }

  void close() { handle_.close(); }

 private:
  explicit reader(bulla_reader *handle) : handle_(handle) {}

  template <typename Function, typename Write>
  void bytes_to(Function function, const query &query, Write &&write) const {
    auto to = detail::giving_bytes(write);
    to.finish(query.with([&](const bulla_query *made) { return function(handle_.get(), made, decltype(to)::run, &to); }));
  }

  detail::owned<bulla_reader, bulla_reader_close> handle_;
};

}  // namespace bulla

#endif
