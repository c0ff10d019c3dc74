package protocol

import "time"

// AnswerTimeout is how long an agent waits for a replica, from dial to welcome, before it turns to
// the next. The time that agents are given to return counts with it (SAFE-1).
const AnswerTimeout = 5 * time.Second
