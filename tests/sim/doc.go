// Package sim plays seeded worlds in which everything goes wrong at random, and checks after every
// step that nothing was done that must not be, and in the end that all came right.
//
//	worlds_test.go      many worlds, one for each seed
//	trial_test.go       one world: what happens in it, and what was seen
//	groups_test.go      the groups that operators want
//	events_test.go      what goes wrong, and what operators do
//	records_test.go     records as they change: steps, IDs, transactions
//	destruction_test.go nothing that works is destroyed without a reason
//	budgets_test.go     what is under way at once, counted anew from the records
//	windows_test.go     nothing planned begins outside of windows, and healing waits for none
//	machines_test.go    one machine for each record, and none without
//	sizes_test.go       sizes that follow a load, judged by the truth of that load
//	ending_test.go      once nothing goes wrong any more, every group comes to its rightful end
//
// The checks know nothing of the planner's code: they read records as any person with etcdctl can,
// and the truth of the world.
//
// A failure prints its seed, what happened last, and how to see all of it:
//
//	go test ./tests/sim -run TestWorlds -seed N -show
package sim
