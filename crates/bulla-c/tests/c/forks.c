/* A process whose threads append forks again and again: a child is refused what came along, waits for nothing of these threads, which it has not
 * got, and appends over a connection of its own. */
#include <bulla.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPECT(status, call)                                                                                   \
  do {                                                                                                         \
    bulla_status got = (call);                                                                                 \
    if (got != (status)) {                                                                                     \
      fprintf(stderr, "line %d: %s: %d and not %d: %s\n", __LINE__, #call, got, (status), bulla_message());     \
      _exit(1);                                                                                                \
    }                                                                                                          \
  } while (0)

enum { THREADS = 3, FORKS = 300, SECONDS_OF_A_CHILD = 120 };

static bulla_log *parents_log;
static bulla_producer *producers[THREADS + 1];
static bulla_receipt *parents_receipt;
static bulla_reader *parents_reader;
static atomic_bool is_over;
static const char *directory, *path;

static bulla_entry entry_of(const char *operation) {
  bulla_entry entry = {.operation = bulla_text(operation)};
  return entry;
}

/* Receipts come and go as fast as they can. */
static void *append(void *producer) {
  bulla_receipt *kept[40] = {NULL};
  for (size_t i = 0; !is_over; i++) {
    bulla_entry entry = entry_of("thread");
    bulla_receipt **receipt = &kept[i % 40];
    EXPECT(BULLA_OK, bulla_append(producer, &entry));
    if (*receipt != NULL) EXPECT(BULLA_OK, bulla_receipt_free(*receipt));
    EXPECT(BULLA_OK, bulla_producer_flush(producer, receipt));
    if (i % 10 == 0) EXPECT(BULLA_OK, bulla_receipt_wait(*receipt));
  }
  for (size_t i = 0; i < 40; i++)
    if (kept[i] != NULL) EXPECT(BULLA_OK, bulla_receipt_free(kept[i]));
  return NULL;
}

/* Has the log in use nearly all of the time. */
static void *flush(void *log) {
  while (!is_over) EXPECT(BULLA_OK, bulla_flush(log));
  return NULL;
}

static void in_child(int which) {
  alarm(SECONDS_OF_A_CHILD);
  bulla_entry entry = entry_of("child");
  bulla_log *log;
  bulla_producer *producer;
  bulla_receipt *receipt;
  for (int i = 0; i <= THREADS; i++) {
    EXPECT(BULLA_CLOSED, bulla_append(producers[i], &entry));
    EXPECT(BULLA_CLOSED, bulla_producer_flush(producers[i], &receipt));
  }
  EXPECT(BULLA_CLOSED, bulla_receipt_wait(parents_receipt));
  EXPECT(BULLA_CLOSED, bulla_flush(parents_log));
  EXPECT(BULLA_CLOSED, bulla_listen(parents_log, path, 0));
  EXPECT(BULLA_CLOSED, bulla_producer_open(parents_log, &producer));
  EXPECT(BULLA_CLOSED, bulla_read(parents_reader, NULL, (bulla_each_entry)(void (*)(void))abort, NULL, NULL));
  if (which % 3 == 0) {
    for (int i = 0; i <= THREADS; i++) EXPECT(BULLA_CLOSED, bulla_producer_close(producers[i]));
    EXPECT(BULLA_CLOSED, bulla_receipt_free(parents_receipt));
    EXPECT(BULLA_CLOSED, bulla_reader_close(parents_reader));
    EXPECT(BULLA_CLOSED, bulla_close(parents_log));
  }
  EXPECT(BULLA_OK, bulla_connect(BULLA_ABI_VERSION, path, &log));
  EXPECT(BULLA_OK, bulla_producer_open(log, &producer));
  EXPECT(BULLA_OK, bulla_append(producer, &entry));
  EXPECT(BULLA_OK, bulla_producer_flush(producer, &receipt));
  EXPECT(BULLA_OK, bulla_receipt_wait(receipt));
  EXPECT(BULLA_OK, bulla_receipt_free(receipt));
  EXPECT(BULLA_OK, bulla_producer_close(producer));
  EXPECT(BULLA_OK, bulla_close(log));
  if (which % 2 == 0) exit(0);
  _exit(0);
}

static int count_children(void *context, uint64_t number, const bulla_entry *entry) {
  (void)number;
  *(int *)context += entry->operation.size == 5;
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  directory = argv[1], path = argv[2];
  bulla_entry entry = entry_of("parent");
  EXPECT(BULLA_OK, bulla_create(directory, NULL, NULL, NULL, 0, NULL, 0));
  EXPECT(BULLA_OK, bulla_open(BULLA_ABI_VERSION, directory, NULL, "durability = 'os'", &parents_log));
  EXPECT(BULLA_OK, bulla_listen(parents_log, path, 0));
  for (int i = 0; i <= THREADS; i++) EXPECT(BULLA_OK, bulla_producer_open(parents_log, &producers[i]));
  EXPECT(BULLA_OK, bulla_append(producers[THREADS], &entry));
  EXPECT(BULLA_OK, bulla_producer_flush(producers[THREADS], &parents_receipt));
  EXPECT(BULLA_OK, bulla_receipt_checkpointed(parents_receipt));
  EXPECT(BULLA_OK, bulla_reader_open(BULLA_ABI_VERSION, directory, NULL, NULL, &parents_reader));
  pthread_t threads[THREADS + 1];
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, append, producers[i]) != 0) return 3;
  if (pthread_create(&threads[THREADS], NULL, flush, parents_log) != 0) return 3;
  for (int i = 0; i < FORKS; i++) {
    int status;
    pid_t child = fork();
    if (child == 0) in_child(i);
    if (child < 0 || waitpid(child, &status, 0) != child) return 4;
    if (WIFSIGNALED(status)) fprintf(stderr, "child %d was ended by signal %d: it waited for ever\n", i, WTERMSIG(status));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return 5;
  }
  is_over = true;
  for (int i = 0; i <= THREADS; i++)
    if (pthread_join(threads[i], NULL) != 0) return 6;
  for (int i = 0; i <= THREADS; i++) EXPECT(BULLA_OK, bulla_producer_close(producers[i]));
  EXPECT(BULLA_OK, bulla_receipt_free(parents_receipt));
  EXPECT(BULLA_OK, bulla_close(parents_log));
  EXPECT(BULLA_OK, bulla_reader_close(parents_reader));
  int children = 0;
  EXPECT(BULLA_OK, bulla_reader_open(BULLA_ABI_VERSION, directory, NULL, NULL, &parents_reader));
  EXPECT(BULLA_OK, bulla_read(parents_reader, NULL, count_children, &children, NULL));
  EXPECT(BULLA_OK, bulla_reader_close(parents_reader));
  printf("%d children appended\n", children);
  return 0;
}
