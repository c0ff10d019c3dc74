package main

// The operators, as they appear in the lists of accepted mutants.
const (
	opTrue     = "true"     // the condition always holds
	opFalse    = "false"    // the condition never holds
	opBoundary = "boundary" // < becomes <=, Before becomes "not After"
	opFlip     = "flip"     // the literal true becomes false, or the other way round
	opSwap     = "swap"     // + becomes -, * becomes /, min becomes max, or the other way round
	opRaise    = "raise"    // a number n becomes n + n/2 + 1
	opDelete   = "delete"   // the statement is not executed
	opZero     = "zero"     // the result or field is its type's zero value
	opDrop     = "drop"     // the slice literal lacks one element
	opCase     = "case"     // the case never matches
)

// switchFile is the name of the file that the overlay adds to the package under test.
const switchFile = "mutant_switch.go"

// switchSource holds the functions that the changed source calls. Each does what the source did,
// unless its mutant is the one that was chosen.
const switchSource = `
import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

var _mutant = func() int { n, _ := strconv.Atoi(os.Getenv("LEASEHOLD_MUTANT")); return n }()

// With LEASEHOLD_MUTANT_TRACE, the number of each mutant that is reached is appended to that file.
var _mutantTrace = func() *os.File {
	name := os.Getenv("LEASEHOLD_MUTANT_TRACE")
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	return f
}()

var _mutantMu sync.Mutex
var _mutantSeen = map[int]bool{}

func _mutantOn(id int) bool {
	if _mutantTrace != nil {
		_mutantMu.Lock()
		if !_mutantSeen[id] {
			_mutantSeen[id] = true
			_, _ = _mutantTrace.WriteString(strconv.Itoa(id) + "\n")
		}
		_mutantMu.Unlock()
	}
	return id == _mutant
}

type _mutantNumber interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

func _mutantLess[T cmp.Ordered](id int, a, b T) bool {
	if _mutantOn(id) {
		return a <= b
	}
	return a < b
}

func _mutantLessEqual[T cmp.Ordered](id int, a, b T) bool {
	if _mutantOn(id) {
		return a < b
	}
	return a <= b
}

func _mutantGreater[T cmp.Ordered](id int, a, b T) bool {
	if _mutantOn(id) {
		return a >= b
	}
	return a > b
}

func _mutantGreaterEqual[T cmp.Ordered](id int, a, b T) bool {
	if _mutantOn(id) {
		return a > b
	}
	return a >= b
}

func _mutantAdd[T _mutantNumber](id int, a, b T) T {
	if _mutantOn(id) {
		return a - b
	}
	return a + b
}

func _mutantSub[T _mutantNumber](id int, a, b T) T {
	if _mutantOn(id) {
		return a + b
	}
	return a - b
}

func _mutantMul[T _mutantNumber](id int, a, b T) T {
	if _mutantOn(id) {
		return a / b
	}
	return a * b
}

func _mutantDiv[T _mutantNumber](id int, a, b T) T {
	if _mutantOn(id) {
		return a * b
	}
	return a / b
}

func _mutantMin[T cmp.Ordered](id int, all ...T) T {
	if _mutantOn(id) {
		return slices.Max(all)
	}
	return slices.Min(all)
}

func _mutantMax[T cmp.Ordered](id int, all ...T) T {
	if _mutantOn(id) {
		return slices.Min(all)
	}
	return slices.Max(all)
}

func _mutantBefore(id int, a, b time.Time) bool {
	if _mutantOn(id) {
		return !a.After(b)
	}
	return a.Before(b)
}

func _mutantAfter(id int, a, b time.Time) bool {
	if _mutantOn(id) {
		return !a.Before(b)
	}
	return a.After(b)
}

func _mutantRaise[T _mutantNumber](id int, n T) T {
	if _mutantOn(id) {
		return n + n/2 + 1
	}
	return n
}

func _mutantZero[T any](id int, v T) T {
	if _mutantOn(id) {
		var zero T
		return zero
	}
	return v
}

func _mutantDrop[S ~[]E, E any](first int, s S) S {
	for i := range s {
		if _mutantOn(first + i) {
			return slices.Delete(s, i, i+1)
		}
	}
	return s
}

func _mutantText[T ~string](id int, v T) T {
	if _mutantOn(id) {
		return "\x00" + v
	}
	return v
}

func _mutantInteger[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64](id int, v T) T {
	if _mutantOn(id) {
		return ^v
	}
	return v
}

var _ = []any{_mutantLess[int], _mutantLessEqual[int], _mutantGreater[int], _mutantGreaterEqual[int], _mutantAdd[int],
	_mutantSub[int], _mutantMul[int], _mutantDiv[int], _mutantMin[int], _mutantMax[int], _mutantBefore, _mutantAfter,
	_mutantRaise[int], _mutantZero[int], _mutantDrop[[]int], _mutantText[string], _mutantInteger[int]}
`
