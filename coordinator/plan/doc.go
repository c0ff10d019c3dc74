// Package plan decides. Compute is one pure function from a Snapshot and a time to a Plan: no I/O,
// no clock, no goroutine, no logging, no dependence on map order. The leader, the dry run, the
// simulator and the tests all call the same function.
//
// # How a plan is made
//
// A group is planned alone. Its spec is chosen first (accept in view.go), then each instance is
// judged on the evidence (judge.go; judgment.go has the result, doom.go notices and evacuations),
// then decide and reconcile in plan.go run the deciders in the order of REC-5:
//
//	storm.go     whether so many are lost that nothing lost is replaced
//	progress.go  phases that follow from facts: created, registered, healthy; failures of slots
//	orders.go    operators' requests
//	by_hand.go   machines that people set up; providers.go: machines that no coordinator can see
//	dead.go      dead instances
//	drain.go     instances that leave in order
//	remove.go    deletions, and the proof that a machine is gone
//	expiry.go    instances that are too old
//	traffic.go   memberships in load balancers; traffic_entries.go: what they are;
//	             members.go: what is known of them
//	calls.go     which provider calls to make
//	heal.go      failed and condemned instances; heal_next.go: how healing and forced expiry
//	             alternate
//	restart.go   restarts; failures.go: how long a failing slot waits
//	scale.go     too many, too few; zones
//	settle.go    which of two instances keeps a slot
//	roll.go      changes of the template; roll_progress.go: how far they are, and blame
//	damage.go    lost records; extras.go: machines without a record
//	status.go    status/<group>; blocked.go: what is due and not done, and why
//	snapshot.go  the input; template.go: which template new instances get
//	budget.go    budgets, and whose turn it is to use them; shared_budget.go: those that several
//	             groups share; limits.go: the limits of the shard
//	agents.go    which agents are offered another version
//	analysis.go  what numbers from outside say of a change; stages.go: canaries, zones, waits;
//	             rollback.go: back to the last good template
//	autoscale.go the size, where it follows the load; schedule.go: or the time
//	autoscale_left.go the load that no number includes, since instances have just left
//	breaker.go   whether failing checks are still healed; breaker_blame.go: or a new template is why
//	busy.go      whether planned work waits for a workload
//	drill.go     failures on purpose; drill_schedule.go: when they are due
//	protect.go   protections that end by themselves
//	shares.go    shares of spot machines and others; zones.go: zones, and moves between them
//	windows.go   whether planned work may begin now
//	motive.go    why an instance is made or leaves
//	planner.go   the same plans, made sooner where only numbers are new: for simulations
//
// # Who knows what
//
// Three layers hold a group, each on top of the one before:
//
//	view.go      the snapshot, the time and the spec in force; nothing changes them
//	fleet.go     members and slots as they will be after the actions chosen so far, and their counts
//	draft.go     what is decided: actions, blocked work, notes; the steps that every decider takes
//
// Most deciders are a type of their own with the draft in it, in the file of their subject:
// healing, roll, traffic. Some files add methods to the type of another file. A decider keeps what
// only it writes. In its methods d is the decider: d.step and d.block are the draft's, and
// d.budget.creationBlocker asks another decider. Methods of view and fleet decide nothing. Budgets
// are counted on the fleet, hence from phases alone.
//
// What blocks work is a value (blocker). What returns it changes nothing; d.waits records it, where
// the work would have begun. One thing such a function may do: where its answer depends on the
// time, it calls d.wake, so that a later plan asks again. That can only make the next plan earlier.
//
// # Invariants
//
//   - An action is one transaction, or part of one with others like it (batch.go). It
//     compares every record it changes and every key of its evidence (SAFE-4); the leader adds the
//     leader's fence and the journal entry.
//   - A record is changed by one action of a plan at most; what follows from the change is decided
//     on the next cache.
//   - The records are the truth: a plan made after a crash at any point leads to the same end.
//   - Nothing is destroyed, and no instance judged lost, on a stale cache or in the time of grace.
package plan
