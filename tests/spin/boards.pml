// SPDX-License-Identifier: MIT
// Boards of lib/exec/lane.cpp: calls with large blocks. Each rank posts an offer on one of two
// boards in turn, and has all offers before its packets run, so that all have entered. A rank fills
// a board again once all have completed the call that used it. Calls are large alltoalls that push,
// large broadcasts that pull, and small broadcasts through slots, whose root runs ahead, in any
// mixture that is the same on every rank.

#ifndef RANKS
#define RANKS 3
#endif
#ifndef CALLS
#define CALLS 5
#endif
#define BOARD(rank, call) ((rank) * 2 + (call) % 2)
#define PAIR(i, j) ((i) * RANKS + (j))

#define ALLTOALL 0
#define BROADCAST 1 /* from 0 */
#define SMALL 2     /* from 1 */

byte kind[CALLS + 1];
byte sequence[RANKS * 2];      /* of a board, written last */
byte offer[RANKS * 2];
byte unread[RANKS * 2];
byte slot[CALLS + 1];          /* slots without end: their credits are in slots.pml */
byte completed[RANKS];
byte open[RANKS];              /* the call for which a rank's buffers may be touched */
byte recv[RANKS * RANKS];
byte moved[RANKS * RANKS];

#ifdef FAULT_CREDIT
#define TOLD(call) (call)
#else
#define TOLD(call) ((call) - 1)
#endif

inline note(rank, call) {
  if :: known[rank] < (call) -> known[rank] = (call) :: else -> skip fi
}

inline boards_free() {
  i = 0;
  do
  :: i == RANKS -> break
  :: else ->
    if
    :: i == me || known[i] >= used[call % 2] -> i++
    :: else -> atomic { completed[i] >= used[call % 2]; known[i] = completed[i]; i++ }
    fi
  od;
  i = 0
}

inline store_offer() {
  d_step {
    assert(unread[BOARD(me, call)] == 0);  /* overwrites an unread board */
    offer[BOARD(me, call)] = call
  }
}

inline store_sequence() {
  d_step { sequence[BOARD(me, call)] = call; unread[BOARD(me, call)] = RANKS - 1 }
}

inline gather() {
  i = 0;
  do
  :: i == RANKS -> break
  :: i == me -> i++
  :: else ->
    atomic { sequence[BOARD(i, call)] >= call; note(i, TOLD(call)) };
    d_step {
      assert(offer[BOARD(i, call)] == call);  /* an offer of another call */
      unread[BOARD(i, call)]--;
      i++
    }
  od
}

/* The packets of the rank and what it awaits. Their order among each other is in handshake.pml. */
inline push() {
  i = 0;
  do
  :: i == RANKS -> break
  :: i == me -> i++
  :: else ->
    d_step {
      assert(open[i] == call);  /* touches the buffer of a rank that has not entered */
      recv[PAIR(me, i)] = call
    };
    d_step { moved[PAIR(me, i)]++; i++ }
  od
}

inline pull() {
  d_step {
    assert(open[0] == call);  /* touches the buffer of a rank that has not entered */
    recv[PAIR(0, me)] = call
  };
  moved[PAIR(me, 0)]++
}

inline await_moved() {
  i = 0;
  do
  :: i == RANKS -> break
  :: i == me -> i++
  :: else -> atomic { moved[PAIR(i, me)] >= base[i] + 1; base[i]++; i++ }
  od
}

inline transfer() {
  if
  :: kind[call] == ALLTOALL ->
    push();
    await_moved();
    i = 0;
    do
    :: i == RANKS -> break
    :: i == me -> i++
    :: else -> assert(recv[PAIR(i, me)] == call); i++  /* complete without the data */
    od
  :: kind[call] == BROADCAST && me == 0 -> await_moved()
  :: else -> pull()
  fi;
  i = 0;
  open[me] = 0
}

proctype rank(byte me) {
  byte call = 1, i;
  byte base[RANKS];
  byte known[RANKS];
  byte used[2];
  do
  :: call > CALLS -> break
  :: call <= CALLS && kind[call] != SMALL ->
    open[me] = call;
#ifndef FAULT_NOT_FREE
    boards_free();
#endif
    used[call % 2] = call;
#ifdef FAULT_HEADER_FIRST
    store_sequence();
    store_offer();
#else
    store_offer();
    store_sequence();
#endif
#ifdef FAULT_DONE_EARLY
    completed[me] = call;
#endif
#ifdef FAULT_NO_GATHER
    transfer();
    gather();
#else
    gather();
    transfer();
#endif
    completed[me] = call;
    call++
  :: else ->
    if
    :: me == 1 -> slot[call] = call
    :: else -> atomic { slot[call] == call; note(1, TOLD(call)) }
    fi;
    completed[me] = call;
    call++
  od
}

init {
  byte i = 1;
  atomic {
    do
    :: i > CALLS -> break
    :: i <= CALLS -> kind[i] = ALLTOALL; i++
    :: i <= CALLS -> kind[i] = BROADCAST; i++
    :: i <= CALLS -> kind[i] = SMALL; i++
    od;
    i = 0;
    do
    :: i == RANKS -> break
    :: else -> run rank(i); i++
    od
  }
}
