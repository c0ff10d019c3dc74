package xdsserver

// Asks says how a request for these names is answered.
func (s *Server) Asks(names []string) error { return asks{catalog: s.catalog}.take(names) }
