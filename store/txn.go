package store

import (
	"errors"
	"fmt"
)

// Validate returns an error unless the transaction is well formed. Both stores check it before
// anything is sent, so that both refuse the same.
func (t Txn) Validate() error {
	if len(t.Writes) == 0 {
		return errors.New("transaction has no writes")
	}
	if n := len(t.Writes); n > MaxOps {
		return fmt.Errorf("transaction has %d writes, at most %d are possible: split it", n, MaxOps)
	}
	comparisons := 0
	for _, c := range t.Conditions {
		if err := c.validate(); err != nil {
			return err
		}
		comparisons++
		if c.Created != 0 && c.Modified != 0 {
			comparisons++ // one for each revision
		}
	}
	if comparisons > MaxOps {
		return fmt.Errorf("transaction has %d comparisons, at most %d are possible: split it", comparisons, MaxOps)
	}
	written := make(map[string]bool, len(t.Writes))
	for _, w := range t.Writes {
		if w.Key == "" {
			return errors.New("write has no key")
		}
		if written[w.Key] {
			return fmt.Errorf("transaction writes %s twice", w.Key)
		}
		written[w.Key] = true
	}
	return nil
}

// Holds reports whether the condition holds for its key as it is; kv is zero if there is none.
func (c Condition) Holds(kv KV) bool {
	there := kv.Modified != 0
	return (c.Modified == 0 || c.Modified == kv.Modified) &&
		(c.Created == 0 || c.Created == kv.Created) &&
		(!c.Absent || !there) && (!c.Exists || there)
}

func (c Condition) validate() error {
	switch {
	case c.Key == "":
		return errors.New("condition has no key")
	case c.Modified < 0 || c.Created < 0:
		return fmt.Errorf("condition on %s has a negative revision", c.Key)
	case c.Absent && (c.Exists || c.Modified != 0 || c.Created != 0):
		return fmt.Errorf("condition on %s contradicts itself: an absent key has no revision", c.Key)
	case !c.Absent && !c.Exists && c.Modified == 0 && c.Created == 0:
		return fmt.Errorf("condition on %s compares nothing", c.Key)
	}
	return nil
}
