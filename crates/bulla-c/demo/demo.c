/* Appends to a log, reads one person's entries back, and proves them to whoever has the log's public key.
 *   cc demo.c $(pkg-config --cflags --libs bulla) -o demo && ./demo audit */
#include <bulla.h>
#include <stdio.h>
#include <stdlib.h>

static void check(bulla_status status, const char *what) {
  if (status == BULLA_OK) return;
  fprintf(stderr, "%s: %s\n", what, bulla_message());
  exit(1);
}

static int count(void *context, uint64_t number, const bulla_entry *entry) {
  if (*(uint64_t *)context == 0)
    printf("entry %llu: %.*s %.*s\n", (unsigned long long)number, (int)entry->operation.size, entry->operation.data,
           (int)entry->location.size, entry->location.data);
  ++*(uint64_t *)context;
  return 0;
}

static int prove(void *key, bulla_bytes proof) {
  bulla_checked checked;
  check(bulla_check(proof, key, NULL, NULL, &checked), "checking the proof");
  printf("proven with %zu bytes: %llu entries, %s\n", proof.size, (unsigned long long)checked.entries,
         checked.anchored ? "signed by the log" : "signed by nobody that is known");
  return !checked.anchored;
}

int main(int argc, char **argv) {
  const char *directory = argc > 1 ? argv[1] : "audit";
  char key[BULLA_KEY_SIZE], location[64], subject[32];
  bulla_log *log;
  bulla_producer *producer;
  bulla_receipt *receipt;
  check(bulla_create(directory, NULL, "example.com/demo-c", NULL, 0, key, sizeof key), "making the log");
  printf("verify with: bulla verify %s --key %s\n", directory, key);
  check(bulla_open(BULLA_ABI_VERSION, directory, NULL, NULL, &log), "opening the log");
  check(bulla_producer_open(log, &producer), "making a producer");
  for (int number = 0; number < 100000; number++) {
    snprintf(subject, sizeof subject, "user_%d", number % 1000);
    snprintf(location, sizeof location, "%s/email", subject);
    bulla_bytes subjects[] = {bulla_text(subject)};
    bulla_entry entry = {.operation = bulla_text("read"), .location = bulla_text(location), .subjects = subjects,
                         .subject_count = 1, .purpose = bulla_text("fulfilling a request"), .status = 200, .has = BULLA_HAS_STATUS};
    check(bulla_append(producer, &entry), "appending");
  }
  check(bulla_producer_flush(producer, &receipt), "flushing");
  check(bulla_receipt_wait(receipt), "waiting until all of it is durable");
  check(bulla_receipt_free(receipt), "freeing the receipt");
  check(bulla_producer_close(producer), "closing the producer");
  check(bulla_close(log), "closing the log");

  bulla_reader *reader;
  uint64_t of_one = 0, of_all = 0;
  bulla_condition of_user = {.field = "subject", .comparison = BULLA_IS, .value = bulla_text("user_42")};
  bulla_query query = {.conditions = &of_user, .condition_count = 1};
  check(bulla_reader_open(BULLA_ABI_VERSION, directory, NULL, key, &reader), "opening the log for reading");
  check(bulla_read(reader, &query, count, &of_one, NULL), "reading");
  printf("%llu entries of user_42\n", (unsigned long long)of_one);
  check(bulla_prove(reader, &query, prove, key), "proving");
  check(bulla_read(reader, NULL, count, &(uint64_t){1}, &of_all), "reading");
  check(bulla_reader_close(reader), "closing the reader");
  printf("100000 entries went in, %llu came back\n", (unsigned long long)of_all);
  return of_all != 100000;
}
