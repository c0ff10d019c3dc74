// Package agentcmd builds an agent from flags, environment and the bootstrap document, for every
// program that can be one: leasehold-agent, and leasehold agent.
//
// It makes no decisions and imports no store, coordinator or provider adapter, so that the agent
// stays small.
package agentcmd
