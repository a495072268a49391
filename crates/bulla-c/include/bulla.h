/* The Bulla audit log, for C. Written by cbindgen from crates/bulla-c/src: do not change it here. docs/c.md is the reference.
 *
 * Every function returns a status but those that cannot fail; bulla_message() says in words what went wrong. Handles are checked: one that is null, was
 * closed, or is used by two threads at once where only one may, is refused. What a function is given it only reads while it is called. */


#ifndef BULLA_H
#define BULLA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// The version of this interface. It grows where a program that was compiled before would break.
#define BULLA_ABI_VERSION 1

// `time` is given.
#define BULLA_HAS_TIME 1

// `duration` is given.
#define BULLA_HAS_DURATION 2

// `size` is given.
#define BULLA_HAS_SIZE 4

// `status` is given.
#define BULLA_HAS_STATUS 8

// `flags` is given.
#define BULLA_HAS_FLAGS 16

// The most bytes that a public key has, the zero at its end counted.
#define BULLA_KEY_SIZE 1024

// `from` is given.
#define BULLA_HAS_FROM 1

// `to` is given.
#define BULLA_HAS_TO 2

// What a call came to, and what the caller can do about it. `bulla_message` says in words what it was.
typedef enum bulla_status {
  // It is done.
  BULLA_OK = 0,
  // The input or an option is wrong, or a handle is: correct it.
  BULLA_INVALID = 1,
  // The memory for staged entries stayed full: try again, or slow down.
  BULLA_TIMEOUT = 2,
  // The log of this producer is closed, or the handle came along into a forked child: open it anew, or connect.
  BULLA_CLOSED = 3,
  // Another process has the log open: connect to it with `bulla_connect`, or stop it.
  BULLA_LOCKED = 4,
  // The environment failed (I/O, a full disk, a missing path): mend it, then open the log again.
  BULLA_UNAVAILABLE = 5,
  // The log is not what was written: run `bulla verify`. Or a proof does not hold.
  BULLA_TAMPERED = 6,
  // The data subject was erased: nobody can read this any more.
  BULLA_ERASED = 7,
  // No key at hand opens this: bring the right identity.
  BULLA_NO_KEY = 8,
  // It is not allowed, or not found.
  BULLA_REFUSED = 9,
  // A callback of the caller returned something else than 0, which ended the call.
  BULLA_STOPPED = 10,
  // A defect of the library. Handles of the call are not to be used any more but to close them.
  BULLA_PANICKED = 11,
  // Another thread uses the handle just now, and only one may: it is as it was.
  BULLA_IN_USE = 12,
} bulla_status;

// How a condition compares.
typedef enum bulla_comparison {
  // The field is `value`.
  BULLA_IS = 0,
  // The field begins with `value`.
  BULLA_BEGINS_WITH = 1,
  // The number is from `first` to `last`.
  BULLA_FROM_TO = 2,
} bulla_comparison;

// Why an entry comes without its personal fields.
typedef enum bulla_withheld {
  // It comes with all that it has.
  BULLA_NOT_WITHHELD = 0,
  // The log says that the key of one of its data subjects was destroyed.
  BULLA_WITHHELD_ERASED = 1,
  // The key of one of its data subjects is lost, and the log says of no erasure.
  BULLA_WITHHELD_KEY_LOST = 2,
  // The keys at hand, or those in the proof, are not everybody's.
  BULLA_WITHHELD_NOT_GIVEN = 3,
  // An event of a damaged log cannot be read, which may say that the key of one of its data subjects was destroyed.
  BULLA_WITHHELD_CANNOT_TELL = 4,
} bulla_withheld;

// A log that is open for appending: by this process, or by another to which it is connected. Any thread may use it.
typedef struct bulla_log bulla_log;

// One thread's way into a log. Its entries keep their order. Two threads must not use it at once: one of them is refused.
typedef struct bulla_producer bulla_producer;

// What reads a log. Any thread may use it, and a writer may be at work meanwhile.
typedef struct bulla_reader bulla_reader;

// What a flush covered, and how far it has come. Any thread may use it.
typedef struct bulla_receipt bulla_receipt;

// Bytes that somebody else owns. `data` is null where there are none, which is something else than an empty value.
typedef struct bulla_bytes {
  // Where they are. They need no zero at their end.
  const char *data;
  // How many they are.
  size_t size;
} bulla_bytes;

// One record of one operation on somebody's data. Absent, zero and empty are three different things. Begin with `{0}`.
//
// What it points to belongs to whoever made it, and is only read while the library is called, or while the callback runs that gets it.
typedef struct bulla_entry {
  // What was done: `create`, `read`, `update`, `delete`, or any verb of the source. UTF-8, never empty.
  struct bulla_bytes operation;
  // What was touched: a key, path or URL. Any bytes.
  struct bulla_bytes location;
  // Whose data: so many data subjects, 64 at most. Null where there are none; UTF-8 each.
  const struct bulla_bytes *subjects;
  // How many data subjects.
  size_t subject_count;
  // The GDPR controller. UTF-8, as the next five.
  struct bulla_bytes controller;
  // The GDPR processor.
  struct bulla_bytes processor;
  // Why.
  struct bulla_bytes purpose;
  // The authenticated principal that did it.
  struct bulla_bytes actor;
  // The network address it came from.
  struct bulla_bytes client;
  // A label.
  struct bulla_bytes stream;
  // Anything else, 16 MiB at most. Any bytes.
  struct bulla_bytes payload;
  // Nanoseconds since the Unix epoch, UTC; the time of appending, without `BULLA_HAS_TIME`.
  int64_t time;
  // How long it took, in nanoseconds; with `BULLA_HAS_DURATION`.
  uint64_t duration;
  // Bytes touched; with `BULLA_HAS_SIZE`.
  uint64_t size;
  // The source's outcome code; with `BULLA_HAS_STATUS`.
  uint32_t status;
  // Free bits; with `BULLA_HAS_FLAGS`.
  uint32_t flags;
  // Which of the numbers there are: `BULLA_HAS_TIME` and so on.
  uint32_t has;
  // Of an entry that is read: why it comes without its personal fields, a `bulla_withheld`. Nothing of one that is appended: 0.
  uint32_t withheld;
} bulla_entry;

// Gets an entry and its number in the log; what it returns other than 0 ends the call, which then returns `BULLA_STOPPED`.
typedef int32_t (*bulla_each_entry)(void *context, uint64_t number, const struct bulla_entry *entry);

// What a proof shows that holds.
typedef struct bulla_checked {
  // Whether the tree is signed by the key that was given: otherwise anybody could have made the proof.
  bool anchored;
  // Entries that it discloses.
  uint64_t entries;
  // Of these, the ones whose personal fields are withheld.
  uint64_t withheld;
  // Frames of the tree that it is a proof of.
  uint64_t tree_size;
} bulla_checked;

// By what a log, or a proof of one, is believed. Begin with `{0}`, which says nothing: then it can only be told to agree with itself.
typedef struct bulla_trust {
  // The public key that the log must be of, Ed25519 or ML-DSA-44 (NAME+ID+KEY); null for none. Where a policy names logs both have to hold: this key has to have
  // signed, and one of those logs, too.
  const char *key;
  // The text of a policy (C2SP tlog-policy): which logs are believed, and how many of which witnesses have to have cosigned them. Null for none. One that names no
  // log needs a key.
  struct bulla_bytes policy;
  // Of a log that is verified: the path of a pin, a copy of its checkpoint that lies elsewhere; null for none.
  const char *pin;
} bulla_trust;

// Gets bytes, which are gone when it returns; what it returns other than 0 ends the call, which then returns `BULLA_STOPPED`.
typedef int32_t (*bulla_each_bytes)(void *context, struct bulla_bytes bytes);

// What a verification found.
typedef struct bulla_report {
  // Whether nothing that was signed is missing or altered.
  bool ok;
  // Whether the log is that of the key that was given.
  bool anchored;
  // Entries that its checkpoint covers.
  uint64_t entries;
  // Blocks that it covers.
  uint64_t blocks;
  // Frames that it covers.
  uint64_t tree_size;
  // Frames behind it that are not signed yet.
  uint64_t pending;
} bulla_report;

// What a verification by more than a key found.
typedef struct bulla_verified {
  // The same as without.
  struct bulla_report report;
  // Frames that are witnessed as the policy asks for; 0 where none was given, it asks for no witness, or it is not met.
  uint64_t witnessed;
  // Frames that the pin covered before; 0 where there was none.
  uint64_t pinned_before;
  // Frames that it covers now; 0 where none was given, or made.
  uint64_t pinned;
  // Whether the pin was made now: whoever expected one to be there knows that it was not.
  bool pin_made;
  // Whether the log was verified and the pin could not be made or advanced: the call returns why.
  bool pin_failed;
} bulla_verified;

// A condition on a field. Of several on one field an entry meets one, of several fields all.
typedef struct bulla_condition {
  // The field's name: `subject`, `actor`, `location`, `status` and so on.
  const char *field;
  // How it compares: a `bulla_comparison`.
  uint32_t comparison;
  // Of texts: with what.
  struct bulla_bytes value;
  // Of numbers: the least.
  uint64_t first;
  // Of numbers: the greatest.
  uint64_t last;
} bulla_condition;

// Which entries are asked for: those that meet everything that is said. Begin with `{0}`, which asks for all.
typedef struct bulla_query {
  // So many conditions.
  const struct bulla_condition *conditions;
  // How many.
  size_t condition_count;
  // Not before this time, in nanoseconds since the Unix epoch; with `BULLA_HAS_FROM`.
  int64_t from;
  // Before this time; with `BULLA_HAS_TO`.
  int64_t to;
  // `BULLA_HAS_FROM` and `BULLA_HAS_TO`.
  uint32_t has;
} bulla_query;

// What a receipt came to. `message` is empty where `status` is `BULLA_OK`, and gone when the callback returns.
typedef void (*bulla_told)(void *context, enum bulla_status status, const char *message);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of this interface that the library has, to be compared with `BULLA_ABI_VERSION`, the header's. Opening and connecting
// compare them, too.
uint32_t bulla_abi_version(void);

// The version of the library, as text that is never freed.
const char *bulla_version(void);

// Checks a proof of entries, as text or as a receipt in COSE, with the log's public key alone, Ed25519 or ML-DSA-44 (null: it can only be told to agree with itself), offline. `each`, unless it is null, gets
// what it discloses, of a proof that holds alone. Returns `BULLA_TAMPERED` where it does not hold, and `BULLA_INVALID` where it cannot be read as
// a proof, as one may be of which a byte was changed: neither holds.
//
// The caller sees to it that:
// `proof` has its size, `key` ends with a zero, `each` may be called with `context` and an entry, `checked` is null or a place for what it shows.
enum bulla_status bulla_check(struct bulla_bytes proof,
                              const char *key,
                              bulla_each_entry each,
                              void *context,
                              struct bulla_checked *checked);

// The same by a key, a policy, or both, of `trust` (null: neither): with a policy the proof's checkpoint has to be cosigned as that asks for, which it is where
// it was made once that was so (`bulla prove --policy`). Returns `BULLA_INVALID` besides for a `trust` with a pin, which a proof is not compared with, for a
// policy without a log beside no key, and for a receipt in COSE with a policy that asks for witnesses: no witness cosigns one.
//
// The caller sees to it that:
// As `bulla_check`; what `trust` points to is there.
enum bulla_status bulla_check_by(struct bulla_bytes proof,
                                 const struct bulla_trust *trust,
                                 bulla_each_entry each,
                                 void *context,
                                 struct bulla_checked *checked);

// Verifies the log in `directory` with public data alone, as `bulla verify --public` does: `report` gets what it came to, and `each`, unless it is null, a
// line of text for each finding. Where its key directory, `directory` with `.keys` behind it (`bulla_verify_with_keys` names another), is there and may be listed, that tells on which paths the log lies
// besides, and how far it had come. Returns `BULLA_OK` where the log could be looked at, whether or not it is what was written: `report->ok` says that.
//
// `key` is the public key that the log must be of, Ed25519 or ML-DSA-44 (null: it can only be told to agree with itself). What takes keys, the command `bulla verify` does.
//
// The caller sees to it that:
// Texts end with a zero, `each` may be called with `context` and bytes, `report` is a place for a report.
enum bulla_status bulla_verify(const char *directory,
                               const char *key,
                               bulla_each_bytes each,
                               void *context,
                               struct bulla_report *report);

// The same by a key, a policy, a pin, or several of them, of `trust` (null: none). With a policy the log has to be witnessed as that asks for; with a pin it has to
// go on from that, which is advanced where no violation is found, and made where there is none: `verified` says so.
//
// Where the log was verified and its pin could not be advanced, this returns why once `verified`, whose `pin_failed` says it, and `each` got everything. `BULLA_REFUSED` where there is a file that is no pin, or
// it lies in the log's directory; `BULLA_INVALID` for a policy that is none, or names no log beside no key, and for a pin that is not there yet of a log of which it is not
// said whose it is.
//
// The caller sees to it that:
// Texts end with a zero, what `trust` points to is there, `each` may be called with `context` and bytes, `verified` is a place for what was found.
enum bulla_status bulla_verify_by(const char *directory,
                                  const struct bulla_trust *trust,
                                  bulla_each_bytes each,
                                  void *context,
                                  struct bulla_verified *verified);

// The same of a log whose keys are in `keys` (null: the directory's name and `.keys`): they tell on which paths the log lies besides, and how far it had come.
// No secret of them is read. Returns `BULLA_REFUSED` besides where `keys` is named and is not there.
//
// The caller sees to it that:
// As `bulla_verify_by`; `keys` is null or ends with a zero.
enum bulla_status bulla_verify_with_keys(const char *directory,
                                         const char *keys,
                                         const struct bulla_trust *trust,
                                         bulla_each_bytes each,
                                         void *context,
                                         struct bulla_verified *verified);

// Makes an empty log in `directory`, with its keys in `keys` (null: the directory's name and `.keys`).
//
// `origin` is the log's name in its signatures (null: a random one). `recipients` are so many age recipients who can read the log;
// with none a local identity is made, in the key directory. `key`, unless it is null, gets the log's public key and a zero, and has room for `BULLA_KEY_SIZE` bytes:
// keep it where the log is not.
//
// The caller sees to it that:
// Texts end with a zero, `recipients` has `recipient_count` of them, `key` is null or has room for `key_size` bytes.
enum bulla_status bulla_create(const char *directory,
                               const char *keys,
                               const char *origin,
                               const char *const *recipients,
                               size_t recipient_count,
                               char *key,
                               size_t key_size);

// Opens the log in `directory` for appending, with its keys in `keys` (null: the directory's name and `.keys`). One process at a time
// has it open; others connect to it (`bulla_connect`).
//
// `abi` is `BULLA_ABI_VERSION`. `settings` are settings in TOML, as `bulla config` names them, which count for this process alone (null: those of the log):
// `"memory = \"128 MiB\"\nlinger = \"20 ms\""`.
//
// The caller sees to it that:
// Texts end with a zero; `log` is a place for a handle.
enum bulla_status bulla_open(uint32_t abi,
                             const char *directory,
                             const char *keys,
                             const char *settings,
                             struct bulla_log **log);

// Connects to a log that another process has open and listens for at the socket `path` (`bulla append --listen`, `bulla_listen`).
// Producers and receipts of it are used as those of a log that is open here. Each producer has a connection of its own, and counts as one of
// the clients that may be connected there; so does a connection that has none yet.
//
// `abi` is `BULLA_ABI_VERSION`.
//
// The caller sees to it that:
// `path` ends with a zero; `log` is a place for a handle.
enum bulla_status bulla_connect(uint32_t abi,
                                const char *path,
                                struct bulla_log **log);

// Listens for entries of other processes at the socket `path`, until the log is closed. Its mode is 0600: processes of the same user may
// connect. `clients` may be connected at once (0: 64), of which each producer of a connection is one.
//
// The caller sees to it that:
// `path` ends with a zero.
enum bulla_status bulla_listen(struct bulla_log *log,
                               const char *path,
                               size_t clients);

// Makes a producer, for one thread.
//
// The caller sees to it that:
// `producer` is a place for a handle.
enum bulla_status bulla_producer_open(struct bulla_log *log, struct bulla_producer **producer);

// Commits everything that any producer of this process has appended, and signs a checkpoint over it. Of a log that another process
// has open: flush its producers and wait for their receipts.
enum bulla_status bulla_flush(struct bulla_log *log);

// What was counted since the log was opened here, as a JSON object (`docs/json.md`, "Counts"), for `each` to copy.
//
// The caller sees to it that:
// `each` may be called with `context` and a text, which is gone when it returns.
enum bulla_status bulla_telemetry(struct bulla_log *log,
                                  int32_t (*each)(void *context, struct bulla_bytes json),
                                  void *context);

// Closes the log: everything is written, synced and signed, or, of a log that another process has open, acknowledged as durable. Producers
// that are left can append no more. The handle is gone whatever this returns, but `BULLA_CLOSED` in a forked child, or `BULLA_IN_USE`; what it returns
// tells whether all of it is durable.
//
// In what `bulla_receipt_notify` calls it cannot wait: it returns `BULLA_INVALID`, a thread of the library closes the log, whose errors nobody
// learns, and the exit of the process (`exit`, the end of `main`) waits until it has.
enum bulla_status bulla_close(struct bulla_log *log);

// Stages an entry: copies it. Where the memory for entries is full it waits, as long as `append_timeout` says, but not in what
// `bulla_receipt_notify` calls. What it points to is not needed any more when this returns.
//
// Returns `BULLA_INVALID` where a field breaks a limit or is not UTF-8, `BULLA_TIMEOUT` where memory stayed full, `BULLA_CLOSED` or the
// log's failure where nothing can be appended any more. The entry is then not staged, and nothing else is affected.
//
// The caller sees to it that:
// `entry` is an entry that nobody changes meanwhile.
enum bulla_status bulla_append(struct bulla_producer *producer,
                               const struct bulla_entry *entry);

// Stages an entry as `bulla_append` does, but never waits: `BULLA_TIMEOUT` at once where there is no memory, or, of a log that another
// process has open, where that has not taken what was staged before.
//
// The caller sees to it that:
// As `bulla_append`.
enum bulla_status bulla_try_append(struct bulla_producer *producer,
                                   const struct bulla_entry *entry);

// Stages so many entries, one after the other, at one time where they have none. `staged`, unless it is null, gets how many
// were staged, from the first on, whatever is returned: a broken limit is found before any is.
//
// The caller sees to it that:
// `entries` has `count` entries that nobody changes meanwhile; `staged` is null or a place for a number.
enum bulla_status bulla_append_batch(struct bulla_producer *producer,
                                     const struct bulla_entry *entries,
                                     size_t count,
                                     size_t *staged);

// Has everything that this producer appended written without waiting for more. `receipt`, unless it is null, gets a receipt for it,
// to be freed with `bulla_receipt_free`.
//
// The caller sees to it that:
// `receipt` is null or a place for a handle.
enum bulla_status bulla_producer_flush(struct bulla_producer *producer,
                                       struct bulla_receipt **receipt);

// Closes a producer: what it staged is written as what any other did. The handle is gone whatever this returns, but `BULLA_IN_USE`, where
// another thread uses it, or `BULLA_CLOSED` in a forked child: then it is as it was.
enum bulla_status bulla_producer_close(struct bulla_producer *producer);

// Opens the log in `directory` for reading, with its keys in `keys` (null: the directory's name and `.keys`). A reader gives entries that a
// signed checkpoint covers, and no others: of a log that is open those of which `bulla_receipt_checkpointed` has returned, and, unasked, those that
// are older than `checkpoint_interval`; of one that was closed all of them.
//
// `abi` is `BULLA_ABI_VERSION`. `key` is the public key that the log must be of, Ed25519 or ML-DSA-44 (null: whatever it names itself, which anybody could have written).
//
// The caller sees to it that:
// Texts end with a zero; `reader` is a place for a handle.
enum bulla_status bulla_reader_open(uint32_t abi,
                                    const char *directory,
                                    const char *keys,
                                    const char *key,
                                    struct bulla_reader **reader);

// Calls `each` with every entry that meets `query` (null: all), in the order of their numbers, once everything that the query reads was
// checked. `count`, unless it is null, gets how many there were.
//
// Returns `BULLA_TAMPERED`, once all entries were given, where keys are lost that the log does not say were erased: then some came
// without personal fields (`withheld` says which), or may meet the query and cannot be opened. Of a query for data subjects that
// finds nothing, `bulla_not_found` says more; of one for a field that has a rule, `bulla_not_as_logged`.
//
// The caller sees to it that:
// What `query` points to is there; `each` may be called with `context` and an entry; `count` is null or a place for a number.
enum bulla_status bulla_read(struct bulla_reader *reader,
                             const struct bulla_query *query,
                             bulla_each_entry each,
                             void *context,
                             uint64_t *count);

// Of a query that found nothing: calls `each` with a line of text for each data subject that it asks for by name, which says what can be
// said of it. A misspelt name must not come to "nothing is held on you".
//
// The caller sees to it that:
// What `query` points to is there; `each` may be called with `context` and bytes.
enum bulla_status bulla_not_found(struct bulla_reader *reader,
                                  const struct bulla_query *query,
                                  bulla_each_bytes each,
                                  void *context);

// Of a query, whatever it finds: calls `each` with a line of text for each field that it asks for in a form that the rules of the log (`[log.fields]`) leave of
// no value, as for a whole address where the log keeps networks: it finds nothing that was logged under them, and the line says what to ask for instead.
// "Nothing is there" is no answer to such a query, and `bulla_read`, `bulla_export` and `bulla_prove` do not say so.
//
// The caller sees to it that:
// What `query` points to is there; `each` may be called with `context` and bytes.
enum bulla_status bulla_not_as_logged(struct bulla_reader *reader,
                                      const struct bulla_query *query,
                                      bulla_each_bytes each,
                                      void *context);

// Writes every entry that meets `query` (null: all) as a line of JSON, as `bulla export` does, through `write`, which gets whole lines.
// Returns `BULLA_TAMPERED` as `bulla_read` does.
//
// The caller sees to it that:
// What `query` points to is there; `write` may be called with `context` and bytes.
enum bulla_status bulla_export(struct bulla_reader *reader,
                               const struct bulla_query *query,
                               bulla_each_bytes write,
                               void *context);

// Proves that the log holds the entries that meet `query`, to whoever has its public key and the proof alone, as `bulla prove` does; the
// proof goes to `write` at once. It discloses the other entries of the same people in the same blocks, too.
//
// The caller sees to it that:
// As `bulla_export`.
enum bulla_status bulla_prove(struct bulla_reader *reader,
                              const struct bulla_query *query,
                              bulla_each_bytes write,
                              void *context);

// Closes a reader; what others read by it just now they read to the end. The handle is gone whatever this returns, but `BULLA_CLOSED` in a forked child,
// or `BULLA_IN_USE`, which is tried for a moment first: then it is as it was.
enum bulla_status bulla_reader_close(struct bulla_reader *reader);

// Waits until the entries are durable: synced to the medium, or in durability mode `os` given to the operating system. A reader gives them
// only once a signed checkpoint covers them: `bulla_receipt_checkpointed`.
//
// Returns the failure that keeps them from it; of a log that another process has open, `BULLA_INVALID` where that refused some, the others being durable.
enum bulla_status bulla_receipt_wait(struct bulla_receipt *receipt);

// As `bulla_receipt_wait`, for so many milliseconds at most; `durable` gets whether that was long enough. With 0 it only looks.
//
// The caller sees to it that:
// `durable` is a place for a truth value.
enum bulla_status bulla_receipt_poll(struct bulla_receipt *receipt,
                                     uint64_t milliseconds,
                                     bool *durable);

// Waits until a signed checkpoint covers the entries, which is when readers give them. Of a log that another process has open nobody here can
// tell: that one signs after `checkpoint_interval`.
enum bulla_status bulla_receipt_checkpointed(struct bulla_receipt *receipt);

// Has `told` called once, with what `bulla_receipt_wait` would return: by this thread where that is known already, else by a thread of the
// library, which goes on when it returns; so it must wait for nothing of the log. It is called though the receipt be freed meanwhile. Where
// this returns anything but `BULLA_OK` it is not called.
//
// The caller sees to it that:
// Any thread may call `told` with `context`.
enum bulla_status bulla_receipt_notify(struct bulla_receipt *receipt,
                                       bulla_told told,
                                       void *context);

// Frees a receipt, also while others wait for it. What it is about becomes durable all the same. The handle is gone whatever this returns, but
// `BULLA_CLOSED` in a forked child, or `BULLA_IN_USE`, which is tried for a moment first: then it is as it was.
enum bulla_status bulla_receipt_free(struct bulla_receipt *receipt);

// What a call was refused or failed for that returned something else than `BULLA_OK`, the last of this thread: UTF-8, which is valid
// until this thread calls the library again. Empty before the first.
const char *bulla_message(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BULLA_H */

#ifndef BULLA_TEXT
#define BULLA_TEXT
/* Text that ends with a zero, as an entry has it; absent where it is null. */
static inline bulla_bytes bulla_text(const char *text) {
  bulla_bytes bytes = {text, text == NULL ? 0 : strlen(text)};
  return bytes;
}
#endif
