package protocol

import "time"

// AnswerTimeout is how long an agent waits for a replica, from dial to welcome, before it tries the
// next. The time that agents have to return includes it (SAFE-1).
const AnswerTimeout = 5 * time.Second

// PingAfter and PongTimeout are gRPC's keepalive on both sides of an agent's connection: a silent
// one is closed after their sum (DET-3).
const (
	PingAfter   = 10 * time.Second
	PongTimeout = 5 * time.Second
)
