package measure

import (
	"os"
	"testing"
	"time"
)

func TestReadOwnUsage(t *testing.T) {
	before, err := Read(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if before.Memory < 1<<20 || before.MostMemory < before.Memory/2 || before.Descriptors < 3 {
		t.Errorf("usage %+v: a process has a megabyte and three descriptors at least", before)
	}
	after := before
	for n := uint64(1); Cores(before, after) == 0; n++ { // until the kernel has counted a tick of it
		for range 1_000_000 {
			n = n*6364136223846793005 + 1
		}
		if after, err = Read(os.Getpid()); err != nil {
			t.Fatal(err)
		}
		if after.At.Sub(before.At) > time.Minute {
			t.Fatal("a minute of work used no processor")
		}
	}
}

func TestReadsNobodysUsage(t *testing.T) {
	if _, err := Read(1 << 30); err == nil {
		t.Error("a process that is not there uses something")
	}
}

// The name of a process may look like the fields that follow it.
func TestCPUOfStrangeNames(t *testing.T) {
	got, err := cpuOf([]byte("7 (a) R 1) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 1 0"))
	if err != nil || got != 2*time.Second {
		t.Errorf("cpu %s, %v: want 2s", got, err)
	}
	if _, err := cpuOf([]byte("7 (a) S 1")); err == nil {
		t.Error("a line that ends too soon is read")
	}
}

func TestReadMachine(t *testing.T) {
	m, err := ReadMachine(2)
	if err != nil || m.Memory == 0 || m.MemoryAvailable == 0 || m.MemoryAvailable > m.Memory {
		t.Errorf("machine %+v, %v", m, err)
	}
}

func TestLoad(t *testing.T) {
	before, err := loadOf([]byte("cpu  100 10 40 800 50 0 0 0 7 0\ncpu0 1 1\n"))
	if err != nil || before != (Load{1500 * time.Millisecond, 10 * time.Second}) {
		t.Errorf("load %+v, %v: want 1.5s of 10s", before, err)
	}
	after, err := loadOf([]byte("cpu  200 10 40 850 50 20 10 20 7 0\n"))
	if err != nil || after.Since(before) != 0.75 || before.Since(before) != 0 {
		t.Errorf("busy for %g of the time since, %v: want 0.75", after.Since(before), err)
	}
	for _, text := range []string{"", "cpu 1 2", "cpu 1 2 3 4 5 6 7 x"} {
		if _, err := loadOf([]byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
	if now, err := ReadLoad(); err != nil || now.All == 0 || now.Busy > now.All {
		t.Errorf("load %+v, %v", now, err)
	}
}
