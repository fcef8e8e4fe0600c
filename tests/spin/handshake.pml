// SPDX-License-Identifier: MIT
// Starts of a persistent plan: an alltoall in which every rank pushes into the receive buffers of
// all others. Each rank has one ring for each peer, consumed by an engine of its own, as in
// lib/exec/ring_plan.cpp: `ready` to the senders, the polls of the lap that is not in use, the
// doorbell; the engine polls, copies, adds to `moved`. Signals are only ever counted up.

#ifndef RANKS
#define RANKS 2
#endif
#ifndef EPOCHS
#define EPOCHS 4
#endif
/* From i to j. */
#define PAIR(i, j) ((i) * RANKS + (j))
#define LAP(ring, epoch) ((ring) * 2 + (epoch) % 2)

byte send[RANKS];
byte recv[RANKS * RANKS];       /* recv[PAIR(i, j)]: what i sent, at j */
byte open[RANKS];               /* the epoch for which j's buffers may be touched, 0: none */
byte ready[RANKS * RANKS];      /* ready[PAIR(i, j)]: raised by j, polled by i's ring to j */
byte moved[RANKS * RANKS];      /* moved[PAIR(i, j)]: raised by i's ring, awaited by j */
byte reference[RANKS * RANKS * 2];  /* of the poll in each lap */
byte doorbell[RANKS * RANKS];   /* in laps */
byte consumed[RANKS * RANKS];   /* in laps */

#ifdef FAULT_OTHER_SLOT
#define READY_RAISED(i, j) ready[PAIR(j, i)]
#else
#define READY_RAISED(i, j) ready[PAIR(i, j)]
#endif

inline copy() {
  d_step {
    assert(open[to] == epoch);  /* touches buffers of a rank that has not entered, or has left */
    assert(open[from] == epoch);
    recv[PAIR(from, to)] = send[from]
  }
}

proctype ring(byte from; byte to) {
  byte epoch = 1;
  do
  :: epoch > EPOCHS -> break
  :: else ->
    doorbell[PAIR(from, to)] >= epoch;
#ifndef FAULT_NO_READY
    ready[PAIR(from, to)] >= reference[LAP(PAIR(from, to), epoch)];
#endif
#ifdef FAULT_SIGNAL_FIRST
    moved[PAIR(from, to)]++;
    copy();
#else
    copy();
    moved[PAIR(from, to)]++;
#endif
    consumed[PAIR(from, to)] = epoch;
    epoch++
  od
}

#define EACH_PEER(body) \
  i = 0; \
  do \
  :: i == RANKS -> break \
  :: i == me -> i++ \
  :: else -> body; i++ \
  od; \
  i = 0

proctype rank(byte me) {
  byte epoch = 1, i, base;
  do
  :: epoch > EPOCHS -> break
  :: else ->
    /* The user fills one buffer and poisons the other. */
    d_step {
      send[me] = epoch;
      EACH_PEER(recv[PAIR(i, me)] = 0);
      open[me] = epoch
    };
    EACH_PEER(READY_RAISED(i, me)++);
#ifdef FAULT_DOORBELL_FIRST
    EACH_PEER(doorbell[PAIR(me, i)] = epoch);
#endif
    EACH_PEER(
      d_step {
        assert(consumed[PAIR(me, i)] + 2 >= epoch);  /* writes into a lap that is in use */
#ifdef FAULT_FROZEN
        reference[LAP(PAIR(me, i), epoch)] = 1
#else
        reference[LAP(PAIR(me, i), epoch)] = base + 1
#endif
      }
    );
#ifndef FAULT_DOORBELL_FIRST
    EACH_PEER(doorbell[PAIR(me, i)] = epoch);
#endif
    EACH_PEER(
#ifdef FAULT_NO_MOVED
      skip
#else
      moved[PAIR(i, me)] >= base + 1
#endif
    );
    EACH_PEER(consumed[PAIR(me, i)] >= epoch);
    d_step {
      EACH_PEER(assert(recv[PAIR(i, me)] == epoch));  /* complete without the data */
      open[me] = 0
    };
#ifdef FAULT_RESET
    EACH_PEER(d_step { ready[PAIR(me, i)] = 0; moved[PAIR(i, me)] = 0 });
#else
    base++;
#endif
    epoch++
  od
}

init {
  byte i, j;
  atomic {
    do
    :: i == RANKS -> break
    :: else ->
      run rank(i);
      j = 0;
      do
      :: j == RANKS -> break
      :: j == i -> j++
      :: else -> run ring(i, j); j++
      od;
      i++
    od
  }
}
