/* A pause right after a reading of the wall clock, before the boot clock is read:
 * LD_PRELOAD it; PAUSE_AT says after which reading, PAUSE_S for how long. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
static int calls;
int clock_gettime(clockid_t id, struct timespec *ts) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int r = real(id, ts);
  if (id == CLOCK_REALTIME) {
    int n = ++calls;
    const char *k = getenv("PAUSE_AT"), *s = getenv("PAUSE_S");
    if (k && n == atoi(k)) {
      struct timespec t = {atoi(s ? s : "8"), 0};
      nanosleep(&t, 0);
    }
  }
  return r;
}
