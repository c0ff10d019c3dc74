// Package bench proves the benches that run a whole shard: with tens of agents, and all parts as
// processes, as an operator starts them. What they measure here says nothing of any machine.
package bench
