package protocol

import "time"

// AnswerTimeout is how long an agent waits for a replica, from dial to welcome, before it turns to
// the next. Whoever gives agents the time to return counts with it (SAFE-1).
const AnswerTimeout = 5 * time.Second
