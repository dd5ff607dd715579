/* What a campaign's kernel leaves in memory for the runner; campaigns/simulate.py reads it. */
#ifndef NETRA_RESULT_H
#define NETRA_RESULT_H

enum state {
  STATE_STARTED = 1, /* neither ended nor aborted: the wave was stopped */
  STATE_EXITED = 2,
  STATE_ABORTED = 3,
};

struct result {
  unsigned state;
  unsigned exit_code;
  unsigned checksum; /* Csmith programs only */
  unsigned reserved;
};

#endif
