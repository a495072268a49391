/* Every misuse is refused, with a message, and nothing else happens: to be run under sanitizers. */
#include <bulla.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPECT(status, call)                                                                                   \
  do {                                                                                                         \
    bulla_status got = (call);                                                                                 \
    if (got != (status)) {                                                                                     \
      fprintf(stderr, "line %d: %s: %d and not %d: %s\n", __LINE__, #call, got, (status), bulla_message());     \
      exit(1);                                                                                                 \
    }                                                                                                          \
    if (got != BULLA_OK && bulla_message()[0] == 0) {                                                           \
      fprintf(stderr, "line %d: %s: no message\n", __LINE__, #call);                                            \
      exit(1);                                                                                                 \
    }                                                                                                          \
  } while (0)

#define HOLDS(condition)                                                                                       \
  do {                                                                                                         \
    if (!(condition)) {                                                                                        \
      fprintf(stderr, "line %d: %s does not hold: %s\n", __LINE__, #condition, bulla_message());                \
      exit(1);                                                                                                 \
    }                                                                                                          \
  } while (0)

static const char *directory, *path;
static char key[BULLA_KEY_SIZE];

static bulla_entry entry_of(const char *location) {
  bulla_entry entry = {.operation = bulla_text("read"), .location = bulla_text(location)};
  return entry;
}

static int take(void *context, uint64_t number, const bulla_entry *entry) {
  (void)number;
  HOLDS(entry->operation.size > 0);
  ++*(uint64_t *)context;
  return 0;
}

static int stop_at_once(void *context, uint64_t number, const bulla_entry *entry) {
  (void)context, (void)number, (void)entry;
  return 7;
}

static int copy(void *context, bulla_bytes bytes) {
  bulla_bytes *into = context;
  char *data = realloc((char *)into->data, into->size + bytes.size);
  HOLDS(data != NULL);
  memcpy(data + into->size, bytes.data, bytes.size);
  into->data = data;
  into->size += bytes.size;
  return 0;
}

static int refuse(void *context, bulla_bytes bytes) {
  (void)context, (void)bytes;
  return -1;
}

static pthread_mutex_t told_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told_now = PTHREAD_COND_INITIALIZER;
static int told_count;

static void told(void *context, bulla_status status, const char *message) {
  pthread_mutex_lock(&told_lock);
  HOLDS(status == BULLA_OK && message[0] == 0 && context == &told_count);
  told_count++;
  pthread_cond_signal(&told_now);
  pthread_mutex_unlock(&told_lock);
}

static void nulls(void) {
  bulla_log *log = (bulla_log *)&log;
  bulla_producer *producer;
  bulla_checked checked = {true, 1, 1, 1};
  bulla_receipt *receipt;
  bulla_reader *reader;
  bulla_report report = {true, true, 1, 1, 1, 1};
  bool durable = true;
  bulla_entry entry = entry_of("x");
  uint64_t count, all = 1;
  EXPECT(BULLA_INVALID, bulla_create(NULL, NULL, NULL, NULL, 0, NULL, 0));
  EXPECT(BULLA_INVALID, bulla_create("x", NULL, NULL, NULL, 1, NULL, 0));
  EXPECT(BULLA_INVALID, bulla_create("x", NULL, "\xff", NULL, 0, NULL, 0));
  /* Whoever can reach the log must not reach its keys. */
  const char *one_in_another[][2] = {{"x", "x/keys"}, {"x", "x"}, {"x/log", "x"}};
  for (int i = 0; i < 3; i++) {
    EXPECT(BULLA_INVALID, bulla_create(one_in_another[i][0], one_in_another[i][1], NULL, NULL, 0, NULL, 0));
    HOLDS(strstr(bulla_message(), "must not reach its keys") != NULL && access("x", F_OK) != 0);
  }
  EXPECT(BULLA_INVALID, bulla_open(BULLA_ABI_VERSION + 1, directory, NULL, NULL, &log));
  HOLDS(log == NULL);
  log = (bulla_log *)&log;
  EXPECT(BULLA_INVALID, bulla_open(BULLA_ABI_VERSION, NULL, NULL, NULL, &log));
  HOLDS(log == NULL);
  EXPECT(BULLA_INVALID, bulla_open(BULLA_ABI_VERSION, directory, NULL, NULL, NULL));
  EXPECT(BULLA_INVALID, bulla_open(BULLA_ABI_VERSION, directory, NULL, "memory = 7 7", &log));
  EXPECT(BULLA_INVALID, bulla_open(BULLA_ABI_VERSION, directory, NULL, "colour = 'red'", &log));
  EXPECT(BULLA_INVALID, bulla_open(BULLA_ABI_VERSION, directory, NULL, "writers = 2\nsegment_size = 18446744073709551615", &log));
  HOLDS(strstr(bulla_message(), "`settings`: line 2, ") != NULL && strstr(bulla_message(), "`segment_size = 18") != NULL);
  EXPECT(BULLA_INVALID, bulla_open(BULLA_ABI_VERSION, directory, NULL, "writers = 2\nretries = 99999999999", &log));
  HOLDS(strstr(bulla_message(), "`settings`: line 2, ") != NULL && strstr(bulla_message(), "`retries = 9") != NULL);
  EXPECT(BULLA_UNAVAILABLE, bulla_open(BULLA_ABI_VERSION, "", NULL, NULL, &log));
  HOLDS(strstr(bulla_message(), "\"\" is not a log") != NULL);
  EXPECT(BULLA_UNAVAILABLE, bulla_open(BULLA_ABI_VERSION, "/nonexistent/x", NULL, NULL, &log));
  log = (bulla_log *)&log;
  EXPECT(BULLA_INVALID, bulla_connect(0, path, &log));
  HOLDS(log == NULL);
  EXPECT(BULLA_INVALID, bulla_connect(BULLA_ABI_VERSION, NULL, &log));
  EXPECT(BULLA_UNAVAILABLE, bulla_connect(BULLA_ABI_VERSION, path, &log));
  EXPECT(BULLA_INVALID, bulla_producer_open(NULL, &producer));
  EXPECT(BULLA_INVALID, bulla_producer_open((bulla_log *)&entry, &producer));
  HOLDS(producer == NULL);
  EXPECT(BULLA_INVALID, bulla_append(NULL, &entry));
  EXPECT(BULLA_INVALID, bulla_try_append(NULL, &entry));
  EXPECT(BULLA_INVALID, bulla_append_batch(NULL, &entry, 1, NULL));
  EXPECT(BULLA_INVALID, bulla_producer_flush(NULL, &receipt));
  HOLDS(receipt == NULL);
  EXPECT(BULLA_INVALID, bulla_producer_close(NULL));
  EXPECT(BULLA_INVALID, bulla_receipt_wait(NULL));
  EXPECT(BULLA_INVALID, bulla_receipt_poll(NULL, 0, &durable));
  HOLDS(!durable);
  EXPECT(BULLA_INVALID, bulla_receipt_checkpointed(NULL));
  EXPECT(BULLA_INVALID, bulla_receipt_notify(NULL, told, NULL));
  EXPECT(BULLA_INVALID, bulla_receipt_free(NULL));
  EXPECT(BULLA_INVALID, bulla_flush(NULL));
  EXPECT(BULLA_INVALID, bulla_listen(NULL, path, 0));
  EXPECT(BULLA_INVALID, bulla_telemetry(NULL, NULL, NULL));
  EXPECT(BULLA_INVALID, bulla_close(NULL));
  EXPECT(BULLA_INVALID, bulla_reader_open(BULLA_ABI_VERSION, NULL, NULL, NULL, &reader));
  reader = (bulla_reader *)&reader;
  EXPECT(BULLA_INVALID, bulla_reader_open(0, directory, NULL, NULL, &reader));
  HOLDS(reader == NULL);
  EXPECT(BULLA_INVALID, bulla_read(NULL, NULL, take, &count, &all));
  HOLDS(all == 0);
  EXPECT(BULLA_INVALID, bulla_export(NULL, NULL, copy, NULL));
  EXPECT(BULLA_INVALID, bulla_prove(NULL, NULL, copy, NULL));
  EXPECT(BULLA_INVALID, bulla_reader_close(NULL));
  EXPECT(BULLA_INVALID, bulla_check(bulla_text("no proof"), NULL, NULL, NULL, NULL));
  EXPECT(BULLA_INVALID, bulla_check((bulla_bytes){NULL, 3}, NULL, NULL, NULL, &checked));
  HOLDS(!checked.anchored && checked.entries == 0 && checked.withheld == 0 && checked.tree_size == 0);
  EXPECT(BULLA_INVALID, bulla_verify(NULL, NULL, NULL, NULL, &report));
  HOLDS(!report.ok && !report.anchored && report.entries + report.blocks + report.tree_size + report.pending == 0);
  report.ok = true;
  EXPECT(BULLA_UNAVAILABLE, bulla_verify("/nonexistent/x", NULL, NULL, NULL, &report));
  HOLDS(!report.ok);
  EXPECT(BULLA_INVALID, bulla_verify(directory, "no key", NULL, NULL, &report));
  EXPECT(BULLA_INVALID, bulla_verify(directory, NULL, NULL, NULL, NULL));
  bulla_trust trust = {0};
  bulla_verified verified;
  memset(&verified, 1, sizeof verified);
  EXPECT(BULLA_UNAVAILABLE, bulla_verify_by("/nonexistent/x", &trust, NULL, NULL, &verified));
  HOLDS(!verified.report.ok && verified.witnessed + verified.pinned_before + verified.pinned == 0);
  HOLDS(!verified.pin_made && !verified.pin_failed);
  verified.pin_failed = true;
  EXPECT(BULLA_INVALID, bulla_verify_by(NULL, &trust, NULL, NULL, &verified));
  HOLDS(!verified.pin_failed);
  EXPECT(BULLA_INVALID, bulla_verify_by(directory, NULL, NULL, NULL, NULL));
  EXPECT(BULLA_INVALID, bulla_verify_with_keys(directory, directory, NULL, NULL, NULL, NULL));
  EXPECT(BULLA_REFUSED, bulla_verify_with_keys(directory, "typo", NULL, NULL, NULL, &verified));
  HOLDS(strstr(bulla_message(), "the key directory typo: ") == bulla_message());
  trust.key = "no key";
  EXPECT(BULLA_INVALID, bulla_verify_by(directory, &trust, NULL, NULL, &verified));
  checked.anchored = true;
  EXPECT(BULLA_INVALID, bulla_check_by(bulla_text("no proof"), &trust, NULL, NULL, &checked));
  HOLDS(!checked.anchored);
  trust = (bulla_trust){NULL, {NULL, 3}, NULL};
  EXPECT(BULLA_INVALID, bulla_verify_by(directory, &trust, NULL, NULL, &verified));
  trust = (bulla_trust){NULL, bulla_text("\377"), NULL};
  EXPECT(BULLA_INVALID, bulla_verify_by(directory, &trust, NULL, NULL, &verified));
  EXPECT(BULLA_INVALID, bulla_check_by(bulla_text("no proof"), NULL, NULL, NULL, NULL));
}

static void entries(bulla_producer *producer) {
  bulla_entry entry = entry_of("0"), wrong = entry;
  size_t staged = 99;
  EXPECT(BULLA_INVALID, bulla_append(producer, NULL));
  wrong.operation = (bulla_bytes){NULL, 0};
  EXPECT(BULLA_INVALID, bulla_append(producer, &wrong));
  wrong = entry, wrong.actor = (bulla_bytes){"\xff", 1};
  EXPECT(BULLA_INVALID, bulla_append(producer, &wrong));
  wrong = entry, wrong.location = (bulla_bytes){NULL, 5};
  EXPECT(BULLA_INVALID, bulla_append(producer, &wrong));
  wrong = entry, wrong.location.size = SIZE_MAX;
  EXPECT(BULLA_INVALID, bulla_append(producer, &wrong));
  wrong = entry, wrong.subject_count = 1;
  EXPECT(BULLA_INVALID, bulla_append(producer, &wrong));
  bulla_bytes subjects[65];
  for (int i = 0; i < 65; i++) subjects[i] = bulla_text("ada");
  wrong = entry, wrong.subjects = subjects, wrong.subject_count = 65;
  EXPECT(BULLA_INVALID, bulla_append(producer, &wrong));
  /* Nobody is somebody else than whoever has the empty name. */
  bulla_bytes nobody[] = {bulla_text("ada"), bulla_text(NULL)};
  wrong = entry, wrong.subjects = nobody, wrong.subject_count = 2;
  EXPECT(BULLA_INVALID, bulla_append(producer, &wrong));
  HOLDS(strstr(bulla_message(), "`subject` is null") != NULL);
  EXPECT(BULLA_INVALID, bulla_append_batch(producer, &wrong, 1, &staged));
  HOLDS(staged == 0);
  wrong = entry, wrong.has = 1u << 31;
  EXPECT(BULLA_INVALID, bulla_append(producer, &wrong));
  static char long_text[70000];
  memset(long_text, 'x', sizeof long_text);
  wrong = entry, wrong.purpose = (bulla_bytes){long_text, sizeof long_text};
  EXPECT(BULLA_INVALID, bulla_append(producer, &wrong));
  bulla_entry batch[] = {entry_of("0"), wrong};
  EXPECT(BULLA_INVALID, bulla_append_batch(producer, batch, 2, &staged));
  HOLDS(staged == 0 && strstr(bulla_message(), "entry 1 of the batch: ") != NULL);
  batch[1] = entry, batch[1].purpose = (bulla_bytes){"\xff", 1};
  EXPECT(BULLA_INVALID, bulla_append_batch(producer, batch, 2, &staged));
  HOLDS(staged == 0 && strcmp(bulla_message(), "entry 1 of the batch: `purpose` is not UTF-8; none of it was staged") == 0);
  EXPECT(BULLA_INVALID, bulla_append_batch(producer, NULL, 2, &staged));
  EXPECT(BULLA_OK, bulla_append_batch(producer, NULL, 0, &staged));
  EXPECT(BULLA_OK, bulla_append_batch(producer, batch, 1, &staged));
  HOLDS(staged == 1);
  /* An entry with all that there is. */
  bulla_entry whole = {.operation = bulla_text("write"), .location = {"a\0b", 3}, .subjects = subjects, .subject_count = 2,
                       .controller = bulla_text("c"), .processor = bulla_text("p"), .purpose = bulla_text(""), .actor = bulla_text("a"),
                       .client = bulla_text("::1"), .stream = bulla_text("s"), .payload = {"\0", 1}, .time = -1, .duration = UINT64_MAX,
                       .size = 0, .status = 7, .flags = UINT32_MAX, .has = 31};
  EXPECT(BULLA_OK, bulla_append(producer, &whole));
  EXPECT(BULLA_OK, bulla_try_append(producer, &entry));
}

static int compare(void *context, uint64_t number, const bulla_entry *entry) {
  if (number != 1) return 0;
  HOLDS(entry->location.size == 3 && memcmp(entry->location.data, "a\0b", 3) == 0);
  HOLDS(entry->subject_count == 2 && entry->subjects[1].size == 3 && memcmp(entry->subjects[1].data, "ada", 3) == 0);
  HOLDS(entry->purpose.data != NULL && entry->purpose.size == 0);
  HOLDS(entry->payload.size == 1 && entry->payload.data[0] == 0);
  HOLDS(entry->time == -1 && entry->duration == UINT64_MAX && entry->size == 0 && entry->status == 7);
  HOLDS(entry->flags == UINT32_MAX && entry->has == 31);
  ++*(int *)context;
  return 0;
}

/* Each is the first of its kind: but for the kind their handles are alike. */
static void of_another_kind(bulla_log *log, bulla_producer *producer) {
  bulla_entry entry = entry_of("x");
  bulla_producer *made;
  bool durable;
  EXPECT(BULLA_INVALID, bulla_append((bulla_producer *)log, &entry));
  HOLDS(strstr(bulla_message(), "no producer") != NULL);
  EXPECT(BULLA_INVALID, bulla_producer_close((bulla_producer *)log));
  EXPECT(BULLA_INVALID, bulla_producer_open((bulla_log *)producer, &made));
  HOLDS(made == NULL && strstr(bulla_message(), "no log") != NULL);
  EXPECT(BULLA_INVALID, bulla_flush((bulla_log *)producer));
  EXPECT(BULLA_INVALID, bulla_close((bulla_log *)producer));
  EXPECT(BULLA_INVALID, bulla_receipt_poll((bulla_receipt *)producer, 0, &durable));
  EXPECT(BULLA_INVALID, bulla_receipt_free((bulla_receipt *)log));
  EXPECT(BULLA_INVALID, bulla_reader_close((bulla_reader *)log));
  /* Nothing was closed by it. */
  EXPECT(BULLA_OK, bulla_producer_open(log, &made));
  EXPECT(BULLA_OK, bulla_producer_close(made));
}

static void *append_many(void *log) {
  bulla_producer *producer;
  EXPECT(BULLA_OK, bulla_producer_open(log, &producer));
  for (int i = 0; i < 1000; i++) {
    bulla_entry entry = entry_of("thread");
    EXPECT(BULLA_OK, bulla_append(producer, &entry));
  }
  EXPECT(BULLA_OK, bulla_producer_close(producer));
  return NULL;
}

/* That what the message says works, forks.c has: a sanitizer's allocator may be locked in a child for ever, where another
   thread was allocating at the fork, so here nothing else is at work then. */
static void in_child(bulla_log *log, bulla_producer *producer, bulla_receipt *receipt) {
  fflush(NULL);
  pid_t child = fork();
  HOLDS(child >= 0);
  if (child == 0) {
    bulla_entry entry = entry_of("never");
    bulla_producer *own;
    EXPECT(BULLA_CLOSED, bulla_append(producer, &entry));
    HOLDS(strstr(bulla_message(), "connect") != NULL);
    EXPECT(BULLA_CLOSED, bulla_producer_open(log, &own));
    EXPECT(BULLA_CLOSED, bulla_receipt_wait(receipt));
    EXPECT(BULLA_CLOSED, bulla_flush(log));
    EXPECT(BULLA_CLOSED, bulla_close(log));
    _exit(0);
  }
  int status;
  HOLDS(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv) {
  HOLDS(argc == 3);
  directory = argv[1], path = argv[2];
  HOLDS(bulla_abi_version() == BULLA_ABI_VERSION && strlen(bulla_version()) > 0);
  HOLDS(bulla_message()[0] == 0);
  nulls();
  char short_key[8];
  EXPECT(BULLA_OK, bulla_create(directory, NULL, "example.com/c", NULL, 0, key, sizeof key));
  EXPECT(BULLA_INVALID, bulla_create("never", NULL, NULL, NULL, 0, short_key, sizeof short_key));
  EXPECT(BULLA_REFUSED, bulla_create(directory, NULL, NULL, NULL, 0, NULL, 0));

  bulla_log *log, *second;
  bulla_producer *producer;
  bulla_receipt *receipt;
  bool durable = false;
  EXPECT(BULLA_OK, bulla_open(BULLA_ABI_VERSION, directory, NULL, "linger = '1 ms'", &log));
  EXPECT(BULLA_INVALID, bulla_open(BULLA_ABI_VERSION, directory, NULL, "backup_paths = ['/nonexistent/x']", &second));
  HOLDS(strstr(bulla_message(), "bulla config") != NULL);
  EXPECT(BULLA_LOCKED, bulla_open(BULLA_ABI_VERSION, directory, NULL, NULL, &second));
  HOLDS(strstr(bulla_message(), "bulla_connect") != NULL && second == NULL);
  EXPECT(BULLA_OK, bulla_producer_open(log, &producer));
  entries(producer);
  of_another_kind(log, producer);
  EXPECT(BULLA_OK, bulla_producer_flush(producer, NULL));
  EXPECT(BULLA_OK, bulla_producer_flush(producer, &receipt));
  EXPECT(BULLA_INVALID, bulla_receipt_poll(receipt, 0, NULL));
  EXPECT(BULLA_INVALID, bulla_receipt_notify(receipt, NULL, NULL));
  EXPECT(BULLA_OK, bulla_receipt_notify(receipt, told, &told_count));
  EXPECT(BULLA_OK, bulla_receipt_wait(receipt));
  EXPECT(BULLA_OK, bulla_receipt_poll(receipt, 0, &durable));
  HOLDS(durable);
  EXPECT(BULLA_OK, bulla_receipt_checkpointed(receipt));
  pthread_mutex_lock(&told_lock);
  while (told_count == 0) pthread_cond_wait(&told_now, &told_lock);
  pthread_mutex_unlock(&told_lock);
  in_child(log, producer, receipt);
  EXPECT(BULLA_OK, bulla_listen(log, path, 4));
  EXPECT(BULLA_INVALID, bulla_listen(log, path, 4));
  EXPECT(BULLA_OK, bulla_receipt_free(receipt));
  EXPECT(BULLA_INVALID, bulla_receipt_free(receipt));
  EXPECT(BULLA_INVALID, bulla_receipt_wait(receipt));

  pthread_t threads[4];
  for (int i = 0; i < 4; i++) HOLDS(pthread_create(&threads[i], NULL, append_many, log) == 0);
  for (int i = 0; i < 4; i++) HOLDS(pthread_join(threads[i], NULL) == 0);

  bulla_bytes json = {NULL, 0};
  EXPECT(BULLA_INVALID, bulla_telemetry(log, NULL, NULL));
  EXPECT(BULLA_STOPPED, bulla_telemetry(log, refuse, NULL));
  EXPECT(BULLA_OK, bulla_telemetry(log, copy, &json));
  HOLDS(json.size > 2 && json.data[0] == '{' && json.data[json.size - 1] == '}');
  free((char *)json.data);
  EXPECT(BULLA_OK, bulla_flush(log));
  EXPECT(BULLA_OK, bulla_close(log));
  EXPECT(BULLA_INVALID, bulla_close(log));
  EXPECT(BULLA_INVALID, bulla_producer_open(log, &(bulla_producer *){NULL}));
  /* What is left of a log that was closed. */
  bulla_entry late = entry_of("late");
  EXPECT(BULLA_CLOSED, bulla_append(producer, &late));
  EXPECT(BULLA_OK, bulla_producer_close(producer));
  EXPECT(BULLA_INVALID, bulla_producer_close(producer));
  EXPECT(BULLA_INVALID, bulla_append(producer, &late));

  bulla_reader *reader;
  uint64_t count = 0, all = 0;
  int compared = 0;
  EXPECT(BULLA_INVALID, bulla_reader_open(BULLA_ABI_VERSION, directory, NULL, "nobody", &reader));
  EXPECT(BULLA_OK, bulla_reader_open(BULLA_ABI_VERSION, directory, NULL, key, &reader));
  EXPECT(BULLA_OK, bulla_read(reader, NULL, take, &count, &all));
  HOLDS(count == all && all == 3 + 4000);
  EXPECT(BULLA_OK, bulla_read(reader, NULL, compare, &compared, NULL));
  HOLDS(compared == 1);
  EXPECT(BULLA_INVALID, bulla_read(reader, NULL, NULL, NULL, NULL));
  EXPECT(BULLA_STOPPED, bulla_read(reader, NULL, stop_at_once, NULL, NULL));
  bulla_condition condition = {.field = "subject", .comparison = BULLA_IS, .value = bulla_text("ada")};
  bulla_query query = {.conditions = &condition, .condition_count = 1};
  EXPECT(BULLA_OK, bulla_read(reader, &query, take, &count, &all));
  HOLDS(all == 1);
  bulla_condition statuses = {.field = "status", .comparison = BULLA_FROM_TO, .first = 0, .last = 6};
  bulla_query by_status = {.conditions = &statuses, .condition_count = 1};
  EXPECT(BULLA_OK, bulla_read(reader, &by_status, take, &count, &all));
  HOLDS(all == 0);
  bulla_query before = {.to = 0, .has = BULLA_HAS_TO};
  EXPECT(BULLA_OK, bulla_read(reader, &before, take, &count, &all));
  HOLDS(all == 1);
  for (int i = 0; i < 5; i++) {
    bulla_condition wrong = condition;
    if (i == 0) wrong.field = NULL;
    if (i == 1) wrong.field = "colour";
    if (i == 2) wrong.comparison = 9;
    if (i == 3) wrong.value = (bulla_bytes){NULL, 0};
    if (i == 4) wrong.comparison = BULLA_FROM_TO;
    bulla_query of_wrong = {.conditions = &wrong, .condition_count = 1};
    EXPECT(BULLA_INVALID, bulla_read(reader, &of_wrong, take, &count, NULL));
  }
  query.has = 64;
  EXPECT(BULLA_INVALID, bulla_read(reader, &query, take, &count, NULL));
  query.has = 0;
  bulla_bytes lines = {NULL, 0}, proof = {NULL, 0};
  EXPECT(BULLA_OK, bulla_export(reader, NULL, copy, &lines));
  size_t ends = 0;
  for (size_t i = 0; i < lines.size; i++) ends += lines.data[i] == '\n';
  HOLDS(ends == 4003);
  EXPECT(BULLA_STOPPED, bulla_export(reader, NULL, refuse, NULL));
  EXPECT(BULLA_OK, bulla_prove(reader, &query, copy, &proof));
  EXPECT(BULLA_REFUSED, bulla_prove(reader, &by_status, copy, &proof));
  bulla_checked checked;
  count = 0;
  EXPECT(BULLA_OK, bulla_check(proof, key, take, &count, &checked));
  HOLDS(checked.anchored && checked.entries == 1 && count == 1 && checked.withheld == 0 && checked.tree_size > 1);
  EXPECT(BULLA_OK, bulla_check(proof, NULL, NULL, NULL, &checked));
  HOLDS(!checked.anchored);
  EXPECT(BULLA_STOPPED, bulla_check(proof, key, stop_at_once, NULL, NULL));
  ((char *)proof.data)[proof.size / 2] ^= 1;
  bulla_status damaged = bulla_check(proof, key, NULL, NULL, NULL);
  HOLDS(damaged == BULLA_TAMPERED || damaged == BULLA_INVALID);
  free((char *)lines.data);
  free((char *)proof.data);
  EXPECT(BULLA_OK, bulla_reader_close(reader));
  EXPECT(BULLA_INVALID, bulla_reader_close(reader));
  EXPECT(BULLA_INVALID, bulla_read(reader, NULL, take, &count, NULL));
  bulla_report report;
  EXPECT(BULLA_OK, bulla_verify(directory, key, NULL, NULL, &report));
  HOLDS(report.ok && report.anchored && report.entries == 4003 && report.pending == 0);
  puts("every misuse was refused");
  return 0;
}
