// SPDX-License-Identifier: MIT
// The ring of device/ring.hpp with several producers, step by step as it is written there. One step
// of this model is one access to shared memory. Spin is sequentially consistent: what a missing
// release or acquire would allow is planted as the order of stores that it allows.
//
// Units stand for kRingUnit bytes. A cell is free, or holds a part of a packet; the engine frees it
// when it consumes it, so that a packet over an unread one, or a look at an unwritten one, is seen.

#ifndef PRODUCERS
#define PRODUCERS 3
#endif
#ifndef PACKETS
#define PACKETS 4
#endif
#ifndef STOP
#define STOP 0 /* where producer 0 stops for ever; see STOPS */
#endif
#ifndef STOP_IN
#define STOP_IN 1 /* in which of its packets */
#endif
#define UNITS 5
#define FREE 0
#define PAD 1
/* Parts of a packet: 2 + 2 * (number of the packet over all producers), + 1 for its second unit. */
#define PART(p, k, i) (2 + 2 * ((p) * PACKETS + (k)) + (i))

/* STOPS: 1 reserved, 2 placed, 3 arrived, 4 wptr stored. */
#define STOP_AT(point) \
  if \
  :: STOP == point && me == 0 && k == STOP_IN -> \
    d_step { stopped_begin = base; halted = true }; \
    goto end_stopped \
  :: else -> skip \
  fi

byte cell[UNITS];
byte stamp[UNITS];
byte reserved, committed, wptr, doorbell, rptr, rptr_hint, arrivals;
byte next[PRODUCERS];  /* the packet of each producer that has to come next */
byte position;         /* of the engine */
byte consumed;         /* packets */
byte finished;         /* producers */
bool halted;
byte stopped_begin;    /* where the reservation of a stopped producer begins */

inline fill(at, what) {
  assert(cell[(at) % UNITS] == FREE);  /* overwrites an unread packet */
  cell[(at) % UNITS] = what
}

/* Cell by cell in the model of two producers, which is FINE; else at once, to have fewer states:
   that every part is there is checked when wptr moves. */
#ifdef FINE
#define STEP d_step
#define TOGETHER
#else
#define STEP
#define TOGETHER d_step
#endif

inline place() {
#ifndef FAULT_STRADDLE
  if :: offset != base -> STEP { fill(base, PAD) } :: else -> skip fi;
#endif
  STEP { fill(offset, PART(me, k, 0)) };
  if :: size == 2 -> STEP { fill(offset + 1, PART(me, k, 1)) } :: else -> skip fi
}

/* Moves wptr and doorbell to `to`: everything below is there, and neither goes back. */
inline ring_doorbell(from, to) {
  d_step {
    at = from;
    do
    :: at < to -> assert(cell[at % UNITS] != FREE); at++  /* published before it was placed */
    :: else -> break
    od;
    at = 0;
    assert(to > wptr);  /* wptr goes back */
    wptr = to;
    committed = to
  };
  STOP_AT(4);
  d_step { assert(to > doorbell); doorbell = to }  /* doorbell goes back */
}

proctype producer(byte me) {
  byte k, size, base, offset, end, seen, hint, at, start;

next_packet:
  if
  :: k == PACKETS -> goto done
  :: else -> size = 1 + (me + k) % 2
  fi;

load:
  base = reserved;
locate:
  atomic {
#ifdef FAULT_STRADDLE
    offset = base;
#else
    offset = (base % UNITS + size <= UNITS -> base : base + UNITS - base % UNITS);
#endif
    end = offset + size
  };
  /* fits(): strict, first by the hint, then by the engine's own cursor, of which nothing is
     believed when it is above base, and that is so only when base is outdated. */
#ifdef FAULT_PADDING
#define FITS(from) (base + size >= (from) && base + size < (from) + UNITS)
#else
#define FITS(from) (end >= (from) && end < (from) + UNITS)
#endif
  hint = rptr_hint;
  if
  :: FITS(hint) -> skip
  :: else ->
    at = rptr;
    if
    :: base >= at && base < at + UNITS && at > hint ->
      d_step {
        if :: rptr_hint == hint -> rptr_hint = at :: else -> skip fi;
        assert(rptr_hint <= rptr)
      }
    :: else -> skip
    fi;
    if
    :: base >= at && base < at + UNITS && FITS(at) -> at = 0
    :: else ->
      /* Not granted, unless base was outdated. The caller comes again when something has moved. */
would_block:
#if STOP != 0
end_full:
#endif
      atomic { (rptr != at || reserved != base) -> at = 0; hint = 0 };
      goto load
    fi
  fi;
  hint = 0;
  atomic {
    if
    :: reserved == base -> reserved = end; assert(end < rptr + UNITS)  /* not strict */
    :: else -> base = reserved; goto locate
    fi
  };
  STOP_AT(1);

#ifdef FAULT_STAMP_FIRST
  stamp[base % UNITS] = end;
#endif
  TOGETHER { place() };
  STOP_AT(2);
#ifdef FAULT_PUBLISH_OWN
  ring_doorbell(committed, end);
  goto published;
#endif
#ifndef FAULT_STAMP_FIRST
  stamp[base % UNITS] = end;
#endif
  atomic {
    arrivals++;
#ifndef FAULT_TWO_PUBLISHERS
    if :: arrivals != 1 -> goto published :: else -> seen = 1 fi
#else
    seen = arrivals
#endif
  };
  STOP_AT(3);

commit:
  /* Only the publisher touches `committed`, so its accesses need no steps of their own. */
  atomic { start = committed; end = start; size = 0 };
  do
  :: size == UNITS -> break
  :: else ->
    atomic {
      if
      :: stamp[end % UNITS] <= end -> break
      :: else -> end = stamp[end % UNITS]; size++
      fi
    }
  od;
  size = 0;
  if
  :: end == start -> skip
  :: else ->
    ring_doorbell(start, end)
  fi;
  /* settle() */
#ifdef FAULT_LEAVES_EARLY
  arrivals = 0;
#else
  atomic {
    if
    :: arrivals == seen -> arrivals = 0
    :: else -> seen = arrivals; goto commit
    fi
  };
#endif

published:
  atomic { seen = 0; start = 0; end = 0; offset = 0; base = 0; size = 0; k++ };
  goto next_packet;

end_stopped:
  false;
done:
  finished++
}

#ifdef FAULT_PAST_DOORBELL
#define LIMIT wptr
#else
#define LIMIT doorbell
#endif

/* Checks the packet at `position` and frees its cells. */
inline consume() {
  d_step {
    part = cell[position % UNITS];
    assert(part != FREE);  /* consumed before it was placed */
    cell[position % UNITS] = FREE;
    if
    :: part == PAD -> position++
    :: else ->
      who = (part - 2) / 2 / PACKETS;
      assert(part == PART(who, next[who], 0));  /* content and order */
      if
      :: (who + next[who]) % 2 == 1 ->
        assert(position % UNITS != UNITS - 1);  /* straddles the end of the ring */
        assert(cell[(position + 1) % UNITS] == part + 1);  /* half a packet */
        cell[(position + 1) % UNITS] = FREE;
        position = position + 2
      :: else -> position++
      fi;
      next[who]++;
      consumed++
    fi;
#ifdef FAULT_SKIP_TOO_FAR
    if :: part == PAD && position % UNITS == 0 -> position++ :: else -> skip fi;
#endif
    assert(position <= doorbell);  /* past the doorbell */
    part = 0;
    who = 0
  }
}

proctype engine() {
  byte part, who;
#if STOP != 0
end_idle:
#endif
  do
  :: consumed == PRODUCERS * PACKETS -> break
  :: LIMIT != position ->
#ifdef FAULT_RPTR_EARLY
    rptr = doorbell;
    consume()
#else
    consume();
    rptr = position
#endif
  od
}

/* What holds when nothing moves any more. */
proctype at_rest() {
  timeout ->
#if STOP == 0
  assert(finished == PRODUCERS && reserved == doorbell && rptr == doorbell && arrivals == 0)
#elif STOP <= 2
  /* Everything before the stopped reservation came out, nothing behind it, and nobody hangs. */
  assert(doorbell == stopped_begin && rptr == doorbell && arrivals == 0)
#else
  /* Nobody rings any more: a publisher that never goes on is not replaced. What was rung is
     consumed, and nobody hangs. Or another one was the publisher, and all came out. */
  assert(rptr == doorbell);
  assert(halted == (arrivals != 0));
  assert(halted || (finished == PRODUCERS && reserved == doorbell))
#endif
}

init {
  byte i;
  atomic {
    do
    :: i < PRODUCERS -> run producer(i); i++
    :: else -> break
    od;
    run engine();
    run at_rest()
  }
}
