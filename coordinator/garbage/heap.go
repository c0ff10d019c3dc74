package garbage

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// size describes a heap, in bytes.
type size struct {
	kept uint64 // live after the last collection
	now  uint64
	goal uint64 // size at which Go wants the next collection to have ended
}

// heap is Go's heap, or a simulated one in tests.
type heap interface {
	size() size
	collections() uint64 // number of completed mark phases
	collect()            // runs a whole collection
	give(room int)
}

type goHeap struct{}

func (goHeap) size() size {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return size{} // the operator has configured the heap
	}
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/goal:bytes"},
	}
	metrics.Read(s)
	return size{kept: s[0].Value.Uint64(), now: s[1].Value.Uint64(), goal: s[2].Value.Uint64()}
}

func (goHeap) collections() uint64 {
	s := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func (goHeap) collect() { runtime.GC() }

func (goHeap) give(room int) { debug.SetGCPercent(room) }
