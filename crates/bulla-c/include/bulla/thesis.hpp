// The interface of "Tamperproof Logging System for GDPR-compliant Key-Value Stores" (TUM), over Bulla: a program that was written for it includes
// this in place of `LoggingManager.hpp`, and says `using namespace bulla::thesis;`. docs/cpp.md says what each setting means here.
#ifndef BULLA_THESIS_HPP
#define BULLA_THESIS_HPP

#include "../bulla.hpp"

#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

namespace bulla::thesis {

struct LoggingConfig {
  std::chrono::milliseconds appendTimeout = std::chrono::milliseconds(30000);
  std::size_t queueCapacity = 8192;
  std::size_t maxExplicitProducers = 16;
  std::size_t batchSize = 100;
  std::size_t numWriterThreads = 2;
  bool useEncryption = true;
  int compressionLevel = 9;
  std::string basePath = "./logs";
  std::string baseFilename = "default";
  std::size_t maxSegmentSize = 100 * 1024 * 1024;
  std::size_t maxAttempts = 10;
  std::chrono::milliseconds baseRetryDelay = std::chrono::milliseconds(1);
  std::size_t maxOpenFiles = 512;
};

class LogEntry {
 public:
  enum class ActionType { CREATE, READ, UPDATE, DELETE };

  LogEntry() : LogEntry(ActionType::CREATE, {}, {}, {}, {}) {}

  LogEntry(ActionType actionType, std::string dataLocation, std::string dataControllerId, std::string dataProcessorId,
           std::string dataSubjectId, std::vector<std::uint8_t> payload = {})
      : actionType_(actionType),
        dataLocation_(std::move(dataLocation)),
        dataControllerId_(std::move(dataControllerId)),
        dataProcessorId_(std::move(dataProcessorId)),
        dataSubjectId_(std::move(dataSubjectId)),
        timestamp_(std::chrono::system_clock::now()),
        payload_(std::move(payload)) {}

  ActionType getActionType() const { return actionType_; }
  std::string getDataLocation() const { return dataLocation_; }
  std::string getDataControllerId() const { return dataControllerId_; }
  std::string getDataProcessorId() const { return dataProcessorId_; }
  std::string getDataSubjectId() const { return dataSubjectId_; }
  std::chrono::system_clock::time_point getTimestamp() const { return timestamp_; }
  const std::vector<std::uint8_t> &getPayload() const { return payload_; }

  // How many bytes serialize() gives.
  std::size_t serializedSize() const {
    return 32 + dataLocation_.size() + dataControllerId_.size() + dataProcessorId_.size() + dataSubjectId_.size() +
           payload_.size();
  }

  // The entry as the thesis lays it out, for programs that count bytes: Bulla lays it out otherwise.
  std::vector<std::uint8_t> serialize() const {
    std::vector<std::uint8_t> out;
    out.reserve(serializedSize());
    const auto number = [&out](std::uint64_t value, int bytes) {
      for (int i = 0; i < bytes; i++) out.push_back(static_cast<std::uint8_t>(value >> 8 * i));
    };
    number(static_cast<std::uint64_t>(actionType_), 4);
    for (const std::string *text : {&dataLocation_, &dataControllerId_, &dataProcessorId_, &dataSubjectId_}) {
      number(text->size(), 4);
      out.insert(out.end(), text->begin(), text->end());
    }
    const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(timestamp_.time_since_epoch());
    number(static_cast<std::uint64_t>(time.count()), 8);
    number(payload_.size(), 4);
    out.insert(out.end(), payload_.begin(), payload_.end());
    return out;
  }

  // What is appended of it: of nobody, controller, processor or payload where that is empty.
  bulla_entry made(bulla_bytes &subject, const std::optional<std::string> &stream) const {
    static constexpr const char *names[] = {"create", "read", "update", "delete"};
    bulla_entry made{};
    made.operation = bulla_text(names[static_cast<int>(actionType_)]);
    made.location = detail::bytes(dataLocation_);
    made.controller = filled(dataControllerId_);
    made.processor = filled(dataProcessorId_);
    if (!dataSubjectId_.empty()) {
      subject = detail::bytes(dataSubjectId_);
      made.subjects = &subject;
      made.subject_count = 1;
    }
    if (stream) made.stream = detail::bytes(*stream);
    if (!payload_.empty()) made.payload = {reinterpret_cast<const char *>(payload_.data()), payload_.size()};
    made.time = std::chrono::nanoseconds(timestamp_.time_since_epoch()).count();
    made.has = BULLA_HAS_TIME;
    return made;
  }

 private:
  static bulla_bytes filled(const std::string &text) {
    return text.empty() ? bulla_bytes{nullptr, 0} : detail::bytes(text);
  }

  ActionType actionType_;
  std::string dataLocation_, dataControllerId_, dataProcessorId_, dataSubjectId_;
  std::chrono::system_clock::time_point timestamp_;
  std::vector<std::uint8_t> payload_;
};

class LoggingManager;

// What tokens are named after there; there is no queue.
class BufferQueue {
 public:
  // One thread's way into the log.
  class ProducerToken {
   public:
    ProducerToken(ProducerToken &&) = default;
    ProducerToken &operator=(ProducerToken &&) = default;

   private:
    friend class ::bulla::thesis::LoggingManager;
    explicit ProducerToken(bulla_producer *handle) : handle_(handle) {}

    detail::owned<bulla_producer, bulla_producer_close> handle_;
    std::vector<bulla_entry> batch_;
    std::vector<bulla_bytes> subjects_;
  };
};

// The log `baseFilename` in `basePath`, which start() makes where there is none.
class LoggingManager {
 public:
  explicit LoggingManager(const LoggingConfig &config) : config_(config) {
    // The same as there, and what is not done here.
    const auto require = [](bool holds, const char *what) {
      if (!holds) throw std::invalid_argument(std::string("LoggingConfig: ") + what);
    };
    require(config.queueCapacity > 0, "queueCapacity must be > 0");
    require(config.numWriterThreads > 0, "numWriterThreads must be > 0");
    require(config.batchSize > 0, "batchSize must be > 0");
    require(config.maxSegmentSize > 0, "maxSegmentSize must be > 0");
    require(config.maxOpenFiles > 0, "maxOpenFiles must be > 0");
    require(config.maxAttempts > 0, "maxAttempts must be > 0");
    require(config.compressionLevel >= 0 && config.compressionLevel <= 9, "compressionLevel must be from 0 to 9");
    require(config.appendTimeout.count() >= 0, "appendTimeout must be >= 0");
    require(config.baseRetryDelay.count() >= 0, "baseRetryDelay must be >= 0");
    require(config.useEncryption, "useEncryption = false is refused: a log of Bulla is always encrypted");
    std::filesystem::create_directories(config.basePath);
  }

  LoggingManager(const LoggingManager &) = delete;
  LoggingManager &operator=(const LoggingManager &) = delete;
  ~LoggingManager() { stop(); }

  bool start() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (log_ != nullptr) return fail("start() was called before, and not stop()");
    const std::string directory = path();
    if (directory.find('\0') != std::string::npos) return fail("basePath and baseFilename must have no NUL in them");
    // One that is there and is empty becomes a log, too. Where it cannot be looked at, the library says why.
    std::error_code ignored;
    const bool is_there = std::filesystem::exists(directory, ignored) && !std::filesystem::is_empty(directory, ignored);
    if (!is_there &&
        bulla_create(directory.c_str(), nullptr, nullptr, nullptr, 0, nullptr, 0) != BULLA_OK)
      return fail(bulla_message());
    if (bulla_open(BULLA_ABI_VERSION, directory.c_str(), nullptr, settings().c_str(), &log_) != BULLA_OK)
      return fail(bulla_message());
    return true;
  }

  // Commits, syncs and signs everything: false where that failed, or it does not run.
  bool stop() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (log_ == nullptr) return fail("start() was not called");
    // Tokens that are left are of no use from here on; what they do with their handles is refused, and nothing of the log stays open by them.
    for (bulla_producer *producer : producers_)
      while (bulla_producer_close(producer) == BULLA_IN_USE) std::this_thread::yield();
    producers_.clear();
    return bulla_close(std::exchange(log_, nullptr)) == BULLA_OK || fail(bulla_message());
  }

  // Throws where it does not run, or there are too many.
  BufferQueue::ProducerToken createProducerToken() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (log_ == nullptr) throw error(BULLA_INVALID, "start() was not called");
    bulla_producer *made = nullptr;
    detail::check(bulla_producer_open(log_, &made));
    producers_.push_back(made);
    return BufferQueue::ProducerToken(made);
  }

  bool append(const LogEntry &entry, BufferQueue::ProducerToken &token,
              const std::optional<std::string> &filename = std::nullopt) {
    bulla_bytes subject;
    const bulla_entry made = entry.made(subject, filename);
    return bulla_append(token.handle_.get(), &made) == BULLA_OK || fail(bulla_message());
  }

  // All of it, or, where it fails, none; but where the log fails in between, the first of them.
  bool appendBatch(const std::vector<LogEntry> &entries, BufferQueue::ProducerToken &token,
                   const std::optional<std::string> &filename = std::nullopt) {
    token.batch_.clear();
    token.subjects_.resize(entries.size());
    for (std::size_t i = 0; i < entries.size(); i++)
      token.batch_.push_back(entries[i].made(token.subjects_[i], filename));
    const bulla_status status =
        bulla_append_batch(token.handle_.get(), token.batch_.data(), token.batch_.size(), nullptr);
    return status == BULLA_OK || fail(bulla_message());
  }

  // Writes entries as lines of JSON, of a time and a person where these are given; once it is stopped. Of a person for whom it finds nothing
  // it returns false, and lastError() says what is known of that name: a misspelt one must not come to "nothing is held on you".
  bool exportLogs(const std::string &outputPath,
                  std::chrono::system_clock::time_point fromTimestamp = std::chrono::system_clock::time_point(),
                  std::chrono::system_clock::time_point toTimestamp = std::chrono::system_clock::time_point(),
                  const std::optional<std::string> &dataSubjectId = std::nullopt) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (log_ != nullptr) return fail("exportLogs() reads what stop() has signed: call that first");
    try {
      query asked;
      if (fromTimestamp != std::chrono::system_clock::time_point()) asked.from(fromTimestamp);
      // There the last moment is among those that are asked for. Behind the last that an entry can have there is none.
      if (toTimestamp != std::chrono::system_clock::time_point() && toTimestamp < last_moment())
        asked.to(toTimestamp + std::chrono::system_clock::duration(1));
      if (dataSubjectId) asked.subject(*dataSubjectId);
      // Before the file is emptied.
      const reader from = reader::open(path());
      std::ofstream out(outputPath, std::ios::binary | std::ios::trunc);
      bool found = false;
      try {
        from.export_json(asked, [&](std::string_view lines) {
          found = true;
          out.write(lines.data(), static_cast<std::streamsize>(lines.size()));
        });
      } catch (...) {
        // What is there by then is a part, which nobody is to take for all.
        out.close();
        std::error_code ignored;
        std::filesystem::remove(outputPath, ignored);
        throw;
      }
      out.close();
      if (!out) return fail(("exportLogs() could not write " + outputPath).c_str());
      if (found || !dataSubjectId) return true;
      const auto known = from.not_found(asked);
      return known.empty() || fail(known.front().c_str());
    } catch (const std::exception &exception) {
      return fail(exception.what());
    }
  }

  // Why the last call of this thread returned false.
  static std::string lastError() { return failure(); }

 private:
  static std::string &failure() {
    static thread_local std::string kept;
    return kept;
  }

  // The last moment of the clock that nanoseconds since 1970 can tell.
  static std::chrono::system_clock::time_point last_moment() {
    using clock = std::chrono::system_clock;
    return clock::time_point(std::chrono::duration_cast<clock::duration>(std::chrono::nanoseconds::max()));
  }

  static bool fail(const char *why) {
    failure() = why;
    return false;
  }

  std::string path() const { return (std::filesystem::path(config_.basePath) / config_.baseFilename).string(); }

  std::string settings() const {
    const auto at_least = [](std::size_t value, std::size_t least) { return std::to_string(value < least ? least : value); };
    // So much that the log's default has room for, and what more writers need besides, each with zstd's memory at that level.
    const std::size_t mebibytes = config_.numWriterThreads * (config_.compressionLevel <= 2 ? 14 : 46);
    const auto milliseconds = [](std::chrono::milliseconds time) { return "\"" + std::to_string(time.count()) + " ms\"\n"; };
    return "append_timeout = " + milliseconds(config_.appendTimeout) +
           "segment_size = " + at_least(config_.maxSegmentSize, std::size_t(64) << 20) +
           "\nwriters = " + std::to_string(config_.numWriterThreads) + "\nmemory = \"" + at_least(mebibytes, 192) + " MiB\"" +
           "\ncompression = " + std::to_string(config_.compressionLevel) +
           "\nretries = " + std::to_string(config_.maxAttempts) + "\nretry_delay = " + milliseconds(config_.baseRetryDelay);
  }

  LoggingConfig config_;
  std::mutex mutex_;
  bulla_log *log_ = nullptr;
  std::vector<bulla_producer *> producers_;
};

}  // namespace bulla::thesis

#endif
