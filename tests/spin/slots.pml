// SPDX-License-Identifier: MIT
// Slots and credits of lib/exec/slot_channel.cpp: calls of a lane whose blocks go through slots,
// each a broadcast from one of two roots or an allgather, the same on every rank, in any mixture.
// A slot is used again DEPTH calls later, once its readers have completed the call that used it. A
// message of call s tells that its writer has completed s - 1; else the `credit` words are read, here
// called `completed`, which are written every DEPTH / 2 calls.

#ifndef RANKS
#define RANKS 3
#endif
#ifndef CALLS
#define CALLS 6
#endif
#ifndef DEPTH
#define DEPTH 2 /* 8 in Ferry */
#endif
#define ALL RANKS /* kind of a call: root 0 or 1, or all write */
#define SLOT(writer, call) ((writer) * DEPTH + (call) % DEPTH)

byte kind[CALLS + 1];
byte sequence[RANKS * DEPTH];  /* of the header, written last */
byte data[RANKS * DEPTH];
byte unread[RANKS * DEPTH];    /* readers that have not copied yet */
byte completed[RANKS];

#ifdef FAULT_EQUAL
#define REACHED(word, value) (word == (value))
#else
#define REACHED(word, value) (word >= (value))
#endif

#ifdef FAULT_NARROW
#define FILLED(at, call) ((sequence[at] % 4) >= ((call) % 4) && sequence[at] != 0)
#else
#define FILLED(at, call) (sequence[at] >= (call))
#endif

#ifdef FAULT_CREDIT
#define TOLD(call) (call)
#else
#define TOLD(call) ((call) - 1)
#endif

#ifdef FAULT_DEPTH
#define FREE_WHEN(call) ((call) - DEPTH - 1)
#else
#define FREE_WHEN(call) ((call) - DEPTH)
#endif

#ifdef FAULT_SELDOM
#define STEP (2 * DEPTH)
#else
#define STEP (DEPTH / 2)
#endif

inline store_data() {
  d_step {
    assert(unread[SLOT(me, call)] == 0);  /* overwrites an unread slot */
    data[SLOT(me, call)] = call * RANKS + me
  }
}

inline store_sequence() {
  d_step { sequence[SLOT(me, call)] = call; unread[SLOT(me, call)] = RANKS - 1 }
}

inline put() {
  i = 0;
  do
  :: i == RANKS || call <= DEPTH -> break
#ifdef FAULT_NO_CREDITS
  :: else -> break
#else
  :: else ->
    if
    :: i == me || REACHED(known[i], FREE_WHEN(call)) -> i++
    :: else -> atomic { REACHED(completed[i], FREE_WHEN(call)); known[i] = completed[i]; i++ }
    fi
#endif
  od;
  i = 0;
#ifdef FAULT_HEADER_FIRST
  store_sequence();
  store_data()
#else
  store_data();
  store_sequence()
#endif
}

inline get(writer) {
  atomic {
    FILLED(SLOT(writer, call), call);
    if :: known[writer] < TOLD(call) -> known[writer] = TOLD(call) :: else -> skip fi
  };
#ifdef FAULT_DONE_EARLY
  completed[me] = call;
#endif
  d_step {
    assert(data[SLOT(writer, call)] == call * RANKS + writer);  /* content */
    unread[SLOT(writer, call)]--
  }
}

proctype rank(byte me) {
  byte call = 1, i;
  byte known[RANKS];  /* what is known here of `completed` */
  do
  :: call > CALLS -> break
  :: else ->
    if :: kind[call] == ALL || kind[call] == me -> put() :: else -> skip fi;
    if
    :: kind[call] == me -> skip
    :: kind[call] == ALL ->
      i = 0;
      do
      :: i == RANKS -> break
      :: i == me -> i++
      :: else -> get(i); i++
      od;
      i = 0
    :: else -> get(kind[call])
    fi;
    if :: call % STEP == 0 -> completed[me] = call :: else -> skip fi;
    call++
  od
}

init {
  byte i = 1;
  atomic {
    do
    :: i > CALLS -> break
    :: i <= CALLS -> kind[i] = 0; i++
    :: i <= CALLS -> kind[i] = 1; i++
    :: i <= CALLS -> kind[i] = ALL; i++
    od;
    i = 0;
    do
    :: i == RANKS -> break
    :: else -> run rank(i); i++
    od
  }
}
