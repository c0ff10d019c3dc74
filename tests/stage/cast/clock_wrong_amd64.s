//go:build wrongclock

#include "textflag.h"

// wrongClockGettime is clock_gettime(DI: which, SI: *timespec) for a caller that has C's
// convention: it changes no register that a callee must keep.
TEXT ·wrongClockGettime(SB),NOSPLIT|NOFRAME,$0
	MOVL	$228, AX // clock_gettime
	SYSCALL          // changes AX, CX and R11 alone
	TESTL	DI, DI
	JNE	done     // not CLOCK_REALTIME
	MOVQ	·wallOffset(SB), CX
	ADDQ	CX, 0(SI)
done:
	RET

DATA ·wrongClock(SB)/8, $·wrongClockGettime(SB)
GLOBL ·wrongClock(SB), NOPTR, $8
