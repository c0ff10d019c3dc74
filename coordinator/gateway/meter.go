package gateway

// Meter counts events of agents' streams. It is called by many goroutines and must not block.
type Meter interface {
	// StreamOpened: an agent has registered.
	StreamOpened()
	// StreamRefused: an agent was sent away at its hello; why is one of the protocol's reasons.
	StreamRefused(why string)
	// StreamClosed: the stream of a registered agent is over.
	StreamClosed(why string)
	// Reported: a report came, and was acknowledged or not.
	Reported(acknowledged bool)
}

// Unmetered counts nothing.
type Unmetered struct{}

func (Unmetered) StreamOpened()        {}
func (Unmetered) StreamRefused(string) {}
func (Unmetered) StreamClosed(string)  {}
func (Unmetered) Reported(bool)        {}
