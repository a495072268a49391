/* What the programs in C and C++ share: the entries that they are given, clocks, and how they fail. src/languages/records.rs says what the
 * entries look like. */
#ifndef BULLA_BENCH_PROGRAM_H
#define BULLA_BENCH_PROGRAM_H

#include <bulla.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline void fail(const char *what, const char *why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}

static inline void check(bulla_status status, const char *what) {
  if (status != BULLA_OK) fail(what, bulla_message());
}

static inline double seconds_of(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Entries as they came, not read yet. */
typedef struct records {
  const char *next, *end;
} records;

static inline records read_records(void) {
  uint64_t size;
  if (fread(&size, sizeof size, 1, stdin) != 1) fail("reading the entries", "there are none");
  char *bytes = (char *)malloc(size);
  if (bytes == NULL || fread(bytes, 1, size, stdin) != size) fail("reading the entries", "they are cut off");
  records made = {bytes, bytes + size};
  return made;
}

static inline void take(records *from, void *to, size_t size) {
  if ((size_t)(from->end - from->next) < size) fail("reading the entries", "one is cut off");
  memcpy(to, from->next, size);
  from->next += size;
}

static inline bulla_bytes take_text(records *from) {
  uint32_t size;
  bulla_bytes text = {NULL, 0};
  take(from, &size, sizeof size);
  if (size == UINT32_MAX) return text;
  if ((size_t)(from->end - from->next) < size) fail("reading the entries", "one is cut off");
  text.data = from->next;
  text.size = size;
  from->next += size;
  return text;
}

/* The next entry; `subject` is where its data subject is to be. */
static inline void take_entry(records *from, bulla_entry *entry, bulla_bytes *subject) {
  memset(entry, 0, sizeof *entry);
  take(from, &entry->has, sizeof entry->has);
  take(from, &entry->status, sizeof entry->status);
  take(from, &entry->flags, sizeof entry->flags);
  take(from, &entry->time, sizeof entry->time);
  take(from, &entry->duration, sizeof entry->duration);
  take(from, &entry->size, sizeof entry->size);
  entry->operation = take_text(from);
  entry->location = take_text(from);
  *subject = take_text(from);
  if (subject->data != NULL) {
    entry->subjects = subject;
    entry->subject_count = 1;
  }
  entry->controller = take_text(from);
  entry->processor = take_text(from);
  entry->purpose = take_text(from);
  entry->actor = take_text(from);
  entry->client = take_text(from);
  entry->stream = take_text(from);
  entry->payload = take_text(from);
}

#endif
