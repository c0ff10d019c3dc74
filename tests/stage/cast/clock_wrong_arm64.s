//go:build wrongclock

#include "textflag.h"

// wrongClockGettime is clock_gettime(R0: which, R1: *timespec) for a caller that has C's
// convention: it changes no register that a callee must keep, but for R27, which belongs to Go's
// assembler.
TEXT ·wrongClockGettime(SB),NOSPLIT|NOFRAME,$0
	MOVD	R0, R9
	MOVD	$113, R8 // clock_gettime
	SVC              // changes R0 alone
	CBNZ	R9, done // not CLOCK_REALTIME
	MOVD	·wallOffset(SB), R10
	MOVD	(R1), R11
	ADD	R10, R11
	MOVD	R11, (R1)
done:
	RET

DATA ·wrongClock(SB)/8, $·wrongClockGettime(SB)
GLOBL ·wrongClock(SB), NOPTR, $8
