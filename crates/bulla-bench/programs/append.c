/* Appends the entries that it is given, one by one, again and again, and prints how long that took: from opening the log until all of them are
 * durable and signed, and it is closed.
 *   append DIRECTORY SECONDS ENTRIES < entries
 * It ends after so many seconds or so many entries, whichever comes first. */
#include "program.h"

/* Entries between looks at the clock. */
enum { BETWEEN_LOOKS = 64 };

int main(int argc, char **argv) {
  if (argc != 4) fail("append", "it takes DIRECTORY SECONDS ENTRIES");
  const double seconds = strtod(argv[2], NULL);
  const uint64_t most = strtoull(argv[3], NULL, 10);
  records given = read_records();
  size_t count = 0, room = 1024;
  bulla_entry *entries = malloc(room * sizeof *entries);
  bulla_bytes *subjects = malloc(room * sizeof *subjects);
  for (; given.next < given.end; count++) {
    if (count == room) {
      room *= 2;
      entries = realloc(entries, room * sizeof *entries);
      subjects = realloc(subjects, room * sizeof *subjects);
    }
    if (entries == NULL || subjects == NULL) fail("reading the entries", "there is no memory for them");
    take_entry(&given, &entries[count], &subjects[count]);
  }
  /* They are where they stay. */
  for (size_t i = 0; i < count; i++)
    if (entries[i].subjects != NULL) entries[i].subjects = &subjects[i];

  bulla_log *log;
  bulla_producer *producer;
  const double start = seconds_of(CLOCK_MONOTONIC), processor = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  check(bulla_open(BULLA_ABI_VERSION, argv[1], NULL, "append_timeout = \"120 s\"", &log), "opening the log");
  check(bulla_producer_open(log, &producer), "making a producer");
  uint64_t appended = 0;
  for (size_t next = 0; appended < most; appended++) {
    if (appended % BETWEEN_LOOKS == 0 && seconds_of(CLOCK_MONOTONIC) - start >= seconds) break;
    check(bulla_append(producer, &entries[next]), "appending");
    if (++next == count) next = 0;
  }
  check(bulla_producer_close(producer), "closing the producer");
  check(bulla_flush(log), "flushing");
  check(bulla_close(log), "closing the log");
  printf("{\"entries\":%llu,\"seconds\":%.9f,\"processor_seconds\":%.9f}\n", (unsigned long long)appended,
         seconds_of(CLOCK_MONOTONIC) - start, seconds_of(CLOCK_PROCESS_CPUTIME_ID) - processor);
  return 0;
}
