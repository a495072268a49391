/* What is told of a receipt closes the log, while other threads flush and close it: nothing hangs, each is told what became of it, and the exit behind
 * that loses nothing. The argument is a directory for the log. */
#include <bulla.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define EXPECT(status, call)                                                                                   \
  do {                                                                                                         \
    bulla_status got = (call);                                                                                 \
    if (got != (status)) {                                                                                     \
      fprintf(stderr, "line %d: %s: %d and not %d: %s\n", __LINE__, #call, got, (status), bulla_message());     \
      _exit(1);                                                                                                \
    }                                                                                                          \
  } while (0)

enum { ROUNDS = 10, FLUSHING = 2, LAST = 200000 };

static bulla_log *logged;
static atomic_int about_to_flush, is_told, is_closing;

/* Has the log flushed until it is closed. The thread that tells of the receipt is one that this waits for. */
static void *flush(void *context) {
  (void)context;
  for (;;) {
    about_to_flush++;
    bulla_status flushed = bulla_flush(logged);
    if (flushed == BULLA_INVALID) return NULL;
    EXPECT(BULLA_OK, flushed);
  }
}

static void *close_too(void *context) {
  (void)context;
  while (!is_closing) usleep(100);
  bulla_status closed = bulla_close(logged);
  if (closed != BULLA_INVALID && closed != BULLA_OK) EXPECT(BULLA_OK, closed);
  return NULL;
}

static void close_it(void *context, bulla_status status, const char *message) {
  (void)context, (void)message;
  EXPECT(BULLA_OK, status);
  int before = about_to_flush;
  /* Whoever flushes comes no further than this once: it has got as far as it gets, as a rule. */
  for (int i = 0; i < 100 && about_to_flush < before + FLUSHING; i++) usleep(100);
  usleep(1000);
  is_closing = 1;
  EXPECT(BULLA_INVALID, bulla_close(logged));
  bulla_producer *producer;
  EXPECT(BULLA_INVALID, bulla_producer_open(logged, &producer));
  is_told = 1;
}

static void one_round(const char *directory, size_t last) {
  bulla_producer *producer;
  bulla_receipt *receipt;
  pthread_t flushing[FLUSHING], closing;
  bulla_entry entry = {.operation = bulla_text("update")};
  EXPECT(BULLA_OK, bulla_open(BULLA_ABI_VERSION, directory, NULL, NULL, &logged));
  EXPECT(BULLA_OK, bulla_producer_open(logged, &producer));
  is_told = is_closing = about_to_flush = 0;
  /* The last time nobody but the callback closes it, with much to write. */
  for (int i = 0; last == 0 && i < FLUSHING; i++) pthread_create(&flushing[i], NULL, flush, NULL);
  if (last == 0) pthread_create(&closing, NULL, close_too, NULL);
  EXPECT(BULLA_OK, bulla_append(producer, &entry));
  EXPECT(BULLA_OK, bulla_producer_flush(producer, &receipt));
  for (size_t i = 0; i < last; i++) EXPECT(BULLA_OK, bulla_append(producer, &entry));
  EXPECT(BULLA_OK, bulla_receipt_notify(receipt, close_it, NULL));
  while (!is_told) usleep(100);
  if (last > 0) return;
  for (int i = 0; i < FLUSHING; i++) pthread_join(flushing[i], NULL);
  pthread_join(closing, NULL);
  EXPECT(BULLA_OK, bulla_receipt_wait(receipt));
  EXPECT(BULLA_OK, bulla_receipt_free(receipt));
  EXPECT(BULLA_OK, bulla_producer_close(producer));
  /* The thread of the library may still be closing it. */
  bulla_log *again;
  bulla_status opened;
  while ((opened = bulla_open(BULLA_ABI_VERSION, directory, NULL, NULL, &again)) == BULLA_LOCKED) usleep(1000);
  EXPECT(BULLA_OK, opened);
  EXPECT(BULLA_OK, bulla_close(again));
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  alarm(300);
  EXPECT(BULLA_OK, bulla_create(argv[1], NULL, NULL, NULL, 0, NULL, 0));
  for (int i = 0; i < ROUNDS; i++) one_round(argv[1], 0);
  one_round(argv[1], LAST);
  return 0;
}
