package xdsserver

// Asks says how a request for these names is answered.
func (s *Server) Asks(names []string) error { return asks{catalog: s.catalog}.take(names) }

// IsReady reports whether streams are served: until the shard has been read they are refused.
func (s *Server) IsReady() bool { return s.catalog.isReady() }
