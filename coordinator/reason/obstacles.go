package reason

import (
	"fmt"
	"maps"

	"github.com/leasehold/leasehold/store"
)

// obstacle has the words for one kind of obstacle, and for what ends it. Without until, the command
// ends it.
type obstacle struct {
	why, until, command func(*store.Blocked) string
}

// obstacles has the words for every kind. For a kind that a later release has added, the record's
// own text is shown.
var obstacles = merged(shardObstacles, groupObstacles, budgetObstacles, rollObstacles, instanceObstacles,
	machineObstacles)

func merged(all ...map[store.BlockedKind]obstacle) map[store.BlockedKind]obstacle {
	sum := map[store.BlockedKind]obstacle{}
	for _, part := range all {
		maps.Copy(sum, part)
	}
	return sum
}

// always returns a text that does not depend on the blocked work.
func always(text string) func(*store.Blocked) string {
	return func(*store.Blocked) string { return text }
}

// otherIs says what happens to the other instance that the work waits for.
func otherIs(what string) func(*store.Blocked) string {
	return func(b *store.Blocked) string { return b.Of.Other + what }
}

// forGroup and forInstance return commands for the group, or the instance, whose work is blocked.
func forGroup(command string) func(*store.Blocked) string {
	return func(b *store.Blocked) string { return command + b.Of.Group }
}

func forInstance(command string) func(*store.Blocked) string {
	return func(b *store.Blocked) string { return command + b.Instance }
}

// causeOf returns the recorded cause.
func causeOf(b *store.Blocked) string { return cause(&b.Of) }

// textOf returns the recorded text of a provider or an agent.
func textOf(b *store.Blocked) string { return b.Of.Text }

// orAfter adds a time limit to what ends an obstacle, if there is one.
func orAfter(what, limited string) func(*store.Blocked) string {
	return func(b *store.Blocked) string {
		if b.Of.For > 0 {
			return fmt.Sprintf(what+limited, b.Of.For)
		}
		return what
	}
}

// waited describes the end of a wait.
func waited(b *store.Blocked) string {
	if b.Of.For == 0 {
		return "its wait is over"
	}
	return fmt.Sprintf("its wait of %s is over", b.Of.For)
}
