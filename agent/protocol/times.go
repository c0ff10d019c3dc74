package protocol

import "time"

// AnswerTimeout is how long an agent waits for a replica, from dial to welcome, before it tries the
// next. The time that agents have to return includes it (SAFE-1).
const AnswerTimeout = 5 * time.Second
