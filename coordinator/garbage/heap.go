package garbage

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// size is a heap's, in bytes.
type size struct {
	kept uint64 // what the last collection left
	now  uint64
	goal uint64 // with which Go wants the next one to be through
}

// heap is Go's, and a simulated one in tests.
type heap interface {
	size() size
	collections() uint64 // how many have found what is kept
	collect()            // a whole one
	give(room int)
}

type goHeap struct{}

func (goHeap) size() size {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return size{} // an operator's
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
