package session

import (
	"testing"

	"github.com/leasehold/leasehold/agent/protocol"
)

// joined returns the beginning of most stories: welcomed by a, first report acknowledged.
func joined(others ...string) []step {
	list := append([]string{"a"}, others...)
	next := ""
	if len(others) > 0 {
		next = others[0]
	}
	return []step{
		{0, nil, "open 1 a epoch 1 lease 0"},
		{0, welcome(1, 7, list...), "warm " + next + ", report 1.1"},
		{0, ack(1, 1, 7), ""},
	}
}

// story is a sequence of events and the expected orders.
type story struct {
	cfg   Config
	begin []step
	steps []step
}

// proves DET-1, DET-2, DET-14, DET-18, DET-8
func TestStories(t *testing.T) {
	for name, story := range stories() {
		t.Run(name, func(t *testing.T) {
			play(t, New(story.cfg), append(story.begin, story.steps...))
		})
	}
}

func stories() map[string]story {
	return map[string]story{
		"reports every interval, and at once when something changed": {ordered("a"), joined(), []step{
			{5 * second, nil, "report 1.2"},
			{0, ack(1, 2, 7), ""},
			{1 * second, Changed{}, "report 1.3"},
			{0, ack(1, 3, 7), ""},
			{5 * second, nil, "report 1.4"},
		}},
		"stream ends: another replica at once, then with back-off": {ordered("a", "b"), joined("b"), []step{
			{1 * second, ended(1), "open 2 b epoch 2 lease 7"},
			{0, ended(2), ""},
			{second, nil, "open 3 a epoch 3 lease 7"},
			{0, ended(3), "open 4 b epoch 4 lease 7"},
			{0, ended(4), ""},
			{2 * second, nil, "open 5 a epoch 5 lease 7"},
			{0, ended(5), "open 6 b epoch 6 lease 7"},
			{0, ended(6), ""},
			{4 * second, nil, "open 7 a epoch 7 lease 7"},
			{0, ended(7), "open 8 b epoch 8 lease 7"},
			{0, ended(8), ""},
			{8 * second, nil, "open 9 a epoch 9 lease 7"},
			{0, ended(9), "open 10 b epoch 10 lease 7"},
			{0, ended(10), ""},
			{16 * second, nil, "open 11 a epoch 11 lease 7"},
			{0, ended(11), "open 12 b epoch 12 lease 7"},
			{0, ended(12), ""},
			{30 * second, nil, "open 13 a epoch 13 lease 7"},
			{0, ended(13), "open 14 b epoch 14 lease 7"},
			{0, ended(14), ""},
			{30 * second, nil, "open 15 a epoch 15 lease 7"},
		}},
		"told to wait: for that long, once": {ordered("a", "b"), joined("b"), []step{
			{1 * second, ended(1), "open 2 b epoch 2 lease 7"},
			{2 * second, waiting(2, 8*second), ""},
			{5 * second, waiting(2, 20*second), ""},
			{3 * second, nil, "close 2 cut"},
			{second, nil, "open 3 a epoch 3 lease 7"},
			{second, waiting(3, second), ""}, // which is less than it has anyway
			{2 * second, welcome(3, 7, "a", "b"), "warm b, report 3.1"},
			{0, waiting(3, second), ""},
		}},
		"no replica is left untried for longer than the longest back-off": {ordered("a", "b"), joined("b"), []step{
			{1 * second, ended(1), "open 2 b epoch 2 lease 7"},
			{2 * second, waiting(2, 100*second), ""},
			{30 * second, nil, "close 2 cut"},
		}},
		"only replica: the same at once": {ordered("a"), joined(), []step{
			{1 * second, ended(1), "open 2 a epoch 2 lease 7"},
		}},
		"a replica that does not welcome in time is left": {ordered("a", "b"), nil, []step{
			{0, nil, "open 1 a epoch 1 lease 0"},
			{5 * second, nil, "close 1 cut, open 2 b epoch 2 lease 0"},
			{0, welcome(1, 3, "a", "b"), ""}, // too late: ignored
			{0, welcome(2, 4, "a", "b"), "warm a, report 2.1"},
		}},
		"unavailable: another at once, then back-off": {ordered("a", "b"), nil, []step{
			{0, nil, "open 1 a epoch 1 lease 0"},
			{0, refused(1, protocol.Refused_UNAVAILABLE, 0), "close 1 cut, open 2 b epoch 2 lease 0"},
			{0, refused(2, protocol.Refused_UNAVAILABLE, 0), "close 2 cut"},
			{second, nil, "open 3 a epoch 3 lease 0"},
		}},
		"no room: comes again when it is told to": {ordered("a"), nil, []step{
			{0, nil, "open 1 a epoch 1 lease 0"},
			{0, crowded(1, 4*second), "close 1 and keep"},
			{3 * second, nil, ""},
			{3 * second / 2, nil, "open 2 a epoch 2 lease 0"}, // a little later than requested
			{0, crowded(2, 3*second), "close 2 and keep"},     // however often: the replica is up
			{27 * second / 8, nil, "open 3 a epoch 3 lease 0"},
			{0, welcome(3, 7, "a"), "warm , report 3.1"},
		}},
		"no room: the others are asked at once, then the one that has room first": {ordered("a", "b"), nil, []step{
			{0, nil, "open 1 a epoch 1 lease 0"},
			{0, crowded(1, 3*second), "close 1 and keep, open 2 b epoch 2 lease 0"},
			{0, crowded(2, 8*second), "close 2 cut"},
			{27 * second / 8, nil, "open 3 a epoch 3 lease 0"},
			{0, ended(3), "open 4 b epoch 4 lease 0"},
		}},
		"no room for longer than any wait": {ordered("a"), nil, []step{
			{0, nil, "open 1 a epoch 1 lease 0"},
			{0, crowded(1, 3600*second), "close 1 and keep"},
			{14 * second, nil, ""},
			{16 * second, nil, "open 2 a epoch 2 lease 0"},
		}},
		"unacknowledged for an interval: moves": {ordered("a", "b"), joined("b"), []step{
			{5 * second, nil, "report 1.2"},
			{5 * second, nil, "report 1.3, open 2 b epoch 2 lease 7"},
			{0, welcome(2, 8, "a", "b"), "close 1 MOVING, warm a, report 2.1"},
			{0, ended(1), ""},
			{0, ack(2, 1, 8), ""},
			{5 * second, nil, "report 2.2"},
		}},
		"not renewed, and no other replica welcomes: stays, asks again later": {ordered("a", "b"), joined("b"), []step{
			{5 * second, nil, "report 1.2"},
			{0, nack(1, 2), "open 2 b epoch 2 lease 7"},
			{0, refused(2, protocol.Refused_UNAVAILABLE, 0), "close 2 cut"},
			{second, nil, "open 3 b epoch 3 lease 7"},
			{0, refused(3, protocol.Refused_UNAVAILABLE, 0), "close 3 cut"},
			{2 * second, nil, "open 4 b epoch 4 lease 7"},
			{0, refused(4, protocol.Refused_UNAVAILABLE, 0), "close 4 cut"},
			{2 * second, nil, "report 1.3"},
			{0, ack(1, 3, 7), ""},
			{5 * second, nil, "report 1.4"}, // b is no longer asked
		}},
		"not renewed, and there is no other replica: stays": {ordered("a"), joined(), []step{
			{5 * second, nil, "report 1.2"},
			{0, nack(1, 2), ""},
			{5 * second, nil, "report 1.3"},
			{0, nack(1, 3), ""},
			{5 * second, nil, "report 1.4"},
		}},
		"two replicas that welcome and renew nothing: no race between them": {ordered("a", "b"), nil, []step{
			{0, nil, "open 1 a epoch 1 lease 0"},
			{0, welcome(1, 7, "a", "b"), "warm b, report 1.1"},
			{0, nack(1, 1), "open 2 b epoch 2 lease 7"},
			{0, welcome(2, 7, "a", "b"), "close 1 MOVING, warm a, report 2.1"},
			{0, nack(2, 1), ""},
			{second, nil, "open 3 a epoch 3 lease 7"},
			{0, welcome(3, 7, "a", "b"), "close 2 MOVING, warm b, report 3.1"},
			{0, nack(3, 1), ""},
			{2 * second, nil, "open 4 b epoch 4 lease 7"},
		}},
		"silent for a whole lease and no other replica: starts over": {ordered("a"), joined(), []step{
			{5 * second, nil, "report 1.2"},
			{5 * second, nil, "report 1.3"},
			{5 * second, nil, "report 1.4"},
			{2 * second, nil, "close 1 MOVING, open 2 a epoch 2 lease 7"},
		}},
		"asked to move: leaves when welcomed elsewhere": {ordered("a", "b", "c"), joined("b", "c"), []step{
			{1 * second, move(1), "open 2 b epoch 2 lease 7"},
			{0, ended(2), ""},
			{second, nil, "open 3 c epoch 3 lease 7"},
			{0, welcome(3, 7, "b", "c"), "close 1 MOVING, warm b, report 3.1"},
		}},
		"asked to move: an acknowledgement does not make it stay": {ordered("a", "b"), joined("b"), []step{
			{1 * second, move(1), "open 2 b epoch 2 lease 7"},
			{0, ended(2), ""},
			{0, Changed{}, "report 1.2"},
			{0, ack(1, 2, 7), ""},
			{second, nil, "open 3 b epoch 3 lease 7"},
			{0, ended(3), "open 4 b epoch 4 lease 7"}, // at once: failures count from the acknowledgement
			{0, ended(4), ""},
		}},
		"asked to move: the bootstrap document's replicas are not asked while there is a stream": {func() Config {
			c := ordered("old")
			c.Memory = Memory{Replicas: []string{"a", "b"}}
			return c
		}(), joined("b"), []step{
			{1 * second, move(1), "open 2 b epoch 2 lease 7"},
			{0, ended(2), ""},
			{second, nil, "open 3 b epoch 3 lease 7"},
			{0, ended(3), ""},
			{2 * second, nil, "open 4 b epoch 4 lease 7"},
		}},
		"sent away before the welcome: another at once": {ordered("a", "b"), nil, []step{
			{0, nil, "open 1 a epoch 1 lease 0"},
			{0, move(1), "close 1 cut, open 2 b epoch 2 lease 0"},
			{0, move(2), "close 2 cut"},
			{second, nil, "open 3 a epoch 3 lease 0"},
		}},
		"an acknowledgement answers the reports up to its own, and no later ones": {
			ordered("a", "b"), joined("b"),
			[]step{
				{5 * second, nil, "report 1.2"},
				{2 * second, Changed{}, "report 1.3"},
				{0, ack(1, 2, 7), ""},
				{0, ack(1, 2, 7), ""}, // received twice
				{5 * second, nil, "report 1.4, open 2 b epoch 2 lease 7"},
			},
		},
		"an acknowledgement without a lease says nothing about it": {ordered("a", "b"), joined("b"), []step{
			{5 * second, nil, "report 1.2"},
			{0, ack(1, 2, 0), ""},
			{0, ended(1), "open 2 b epoch 2 lease 7"},
		}},
		"told to wait for no time: that says nothing": {ordered("a", "b"), nil, []step{
			{0, nil, "open 1 a epoch 1 lease 0"},
			{2 * second, waiting(1, 0), ""},
			{0, waiting(1, -second), ""},
			{0, waiting(1, 8*second), ""},
			{8 * second, nil, "close 1 cut, open 2 b epoch 2 lease 0"},
		}},
		"no room, however often: no other replica is tried": {func() Config {
			c := ordered("old")
			c.Memory = Memory{Replicas: []string{"a"}}
			return c
		}(), nil, []step{
			{0, nil, "open 1 a epoch 1 lease 0"},
			{0, crowded(1, 8*second), "close 1 and keep"},
			{9 * second, nil, "open 2 a epoch 2 lease 0"},
			{0, crowded(2, 8*second), "close 2 and keep"},
			{9 * second, nil, "open 3 a epoch 3 lease 0"},
			{0, crowded(3, 8*second), "close 3 and keep"},
			{9 * second, nil, "open 4 a epoch 4 lease 0"},
		}},
		"retired by the serving replica: the stream that is tried is cut too": {ordered("a", "b"), joined("b"), []step{
			{1 * second, move(1), "open 2 b epoch 2 lease 7"},
			{0, retired(1), "close 1 cut, close 2 cut, stop workload"},
		}},
		"superseded while it is tried: the serving stream is newer, so another is tried after a while": {ordered("a",
			"b"), joined("b"), []step{
			{1 * second, move(1), "open 2 b epoch 2 lease 7"},
			{0, refused(2, protocol.Refused_SUPERSEDED, 0), "close 2 cut"},
			{second, nil, "open 3 b epoch 3 lease 7"},
		}},
		"a list of replicas is news only if it names others, and blanks and doubles are none": {
			ordered("a"), joined(),
			[]step{
				{0, coordinators(1, "a"), ""},
				{0, coordinators(1, "a", "", "b", "b"), "warm b"},
				{0, coordinators(1, "b", "a"), ""},
			},
		},
		"a rest counts as a failure": {ordered("a"), nil, []step{
			{0, nil, "open 1 a epoch 1 lease 0"},
			{0, refused(1, protocol.Refused_WRONG_SHARD, 0), "close 1 cut"},
			{30 * second, nil, "open 2 a epoch 2 lease 0"},
			{0, ended(2), ""},
			{second, nil, "open 3 a epoch 3 lease 0"},
		}},
		"asked to move with nowhere to go: goes as soon as there is": {ordered("a"), joined(), []step{
			{1 * second, move(1), ""},
			{1 * second, coordinators(1, "a", "b"), "warm b, open 2 b epoch 2 lease 7"},
		}},
		"stream ends while another is tried: that one goes on": {ordered("a", "b"), joined("b"), []step{
			{1 * second, move(1), "open 2 b epoch 2 lease 7"},
			{0, ended(1), ""},
			{0, welcome(2, 7, "a", "b"), "warm a, report 2.1"},
		}},
		"our next stream supersedes the one before": {ordered("a", "b"), joined("b"), []step{
			{1 * second, move(1), "open 2 b epoch 2 lease 7"},
			{0, refused(1, protocol.Refused_SUPERSEDED, 0), "close 1 cut"},
			{0, welcome(2, 7, "a", "b"), "warm a, report 2.1"},
		}},
		"superseded by a stream of ours that was given up, and came through late: at once elsewhere": {ordered("a", "b",
			"c"), joined("b", "c"), []step{
			{5 * second, nil, "report 1.2"},
			{5 * second, nil, "report 1.3, open 2 b epoch 2 lease 7"},
			{0, ended(2), ""},
			{0, refused(1, protocol.Refused_SUPERSEDED, 0), "close 1 cut, open 3 c epoch 3 lease 7"},
		}},
		"superseded by another agent: waits long": {ordered("a", "b"), joined("b"), []step{
			{1 * second, refused(1, protocol.Refused_SUPERSEDED, 0), "close 1 cut"},
			{30 * second, nil, "open 2 b epoch 2 lease 7"},
		}},
		"retired: stops the workload, keeps asking, starts it if welcomed": {ordered("a", "b"), joined("b"), []step{
			{1 * second, retired(1), "close 1 cut, stop workload"},
			{30 * second, nil, "open 2 b epoch 2 lease 7"},
			{0, retired(2), "close 2 cut"},
			{30 * second, nil, "open 3 a epoch 3 lease 7"},
			{0, welcome(3, 9, "a", "b"), "run workload, warm b, report 3.1"},
		}},
		"retired by one replica: the other stream is cut too": {ordered("a", "b"), joined("b"), []step{
			{1 * second, move(1), "open 2 b epoch 2 lease 7"},
			{0, retired(2), "close 2 cut, close 1 cut, stop workload"},
		}},
		"no record: asks all replicas, then waits with the connection that it has": {ordered("a", "b"), nil, []step{
			{0, nil, "open 1 a epoch 1 lease 0"},
			{0, unrecorded(1), "close 1 and keep, open 2 b epoch 2 lease 0"},
			{0, unrecorded(2), "close 2 and keep"},
			{45 * second / 2, nil, "open 3 b epoch 3 lease 0"},
			{0, unrecorded(3), "close 3 and keep"},
			{45 * second / 2, nil, "open 4 b epoch 4 lease 0"},
			{0, welcome(4, 7, "a", "b"), "warm a, report 4.1"},
		}},
		"no record while a stream is open: that one stays": {ordered("a", "b"), joined("b"), []step{
			{5 * second, nil, "report 1.2"},
			{0, nack(1, 2), "open 2 b epoch 2 lease 7"},
			{0, unrecorded(2), "close 2 and keep"},
			{5 * second, nil, "report 1.3"},
			{0, ack(1, 3, 7), ""},
			{5 * second, nil, "report 1.4"}, // b is no longer asked
		}},
		"retired without a record, as a replica of an earlier release says it: the same as no record": {ordered("a",
			"b"), joined("b"), []step{
			{1 * second, refused(1, protocol.Refused_RETIRED, 0), "close 1 cut, open 2 b epoch 2 lease 7"},
			{0, refused(2, protocol.Refused_RETIRED, 0), "close 2 cut"},
			{30 * second, nil, "open 3 b epoch 3 lease 7"},
			{0, refused(3, protocol.Refused_RETIRED, 0), "close 3 cut"},
		}},
		"stale epoch: above the stored one, at the same replica, at once": {ordered("a", "b"), nil, []step{
			{0, nil, "open 1 a epoch 1 lease 0"},
			{0, refused(1, protocol.Refused_STALE_EPOCH, 41), "close 1 cut, open 2 a epoch 42 lease 0"},
			{0, refused(2, protocol.Refused_STALE_EPOCH, 50), "close 2 cut, open 3 b epoch 51 lease 0"},
			{0, refused(3, protocol.Refused_STALE_EPOCH, 60), "close 3 cut"},
			{second, nil, "open 4 a epoch 61 lease 0"},
		}},
		"wrong shard: keeps trying, slowly, and leaves the workload alone": {ordered("a"), nil, []step{
			{0, nil, "open 1 a epoch 1 lease 0"},
			{0, refused(1, protocol.Refused_WRONG_SHARD, 0), "close 1 cut"},
			{30 * second, nil, "open 2 a epoch 2 lease 0"},
			{0, refused(2, protocol.Refused_BOOT_CONFLICT, 0), "close 2 cut"},
			{30 * second, nil, "open 3 a epoch 3 lease 0"},
			{0, refused(3, protocol.Refused_MALFORMED, 0), "close 3 cut"},
			{30 * second, nil, "open 4 a epoch 4 lease 0"},
		}},
		"a new lease is presented with the next hello": {ordered("a", "b"), joined("b"), []step{
			{5 * second, nil, "report 1.2"},
			{0, ack(1, 2, 12), ""},
			{0, ended(1), "open 2 b epoch 2 lease 12"},
		}},
		"the bootstrap document's replicas are the last resort": {func() Config {
			c := ordered("old")
			c.Memory = Memory{Epoch: 9, Lease: 5, Replicas: []string{"a", "b"}}
			return c
		}(), nil, []step{
			{0, nil, "open 1 a epoch 10 lease 5"},
			{0, ended(1), "open 2 b epoch 11 lease 5"},
			{0, ended(2), ""},
			{second, nil, "open 3 a epoch 12 lease 5"},
			{0, ended(3), ""},
			{second, nil, "open 4 b epoch 13 lease 5"},
			{0, ended(4), "open 5 old epoch 14 lease 5"},
		}},
		"an empty list of replicas says nothing": {ordered("a"), joined(), []step{
			{0, coordinators(1), ""},
			{0, ended(1), "open 2 a epoch 2 lease 7"},
		}},
		"messages of streams that are over change nothing": {ordered("a", "b"), joined("b"), []step{
			{1 * second, ended(1), "open 2 b epoch 2 lease 7"},
			{0, move(1), ""},
			{0, retired(1), ""},
			{0, ack(1, 1, 99), ""},
			{0, ended(2), ""},
			{second, nil, "open 3 a epoch 3 lease 7"},
		}},
	}
}
