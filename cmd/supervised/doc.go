// Package supervised tells systemd that a service is ready, and that its main loop still turns.
//
// It reads its environment once and removes it there, so that no child speaks for its parent.
// Without systemd it does nothing. It also listens to the signals that end a process, across exec.
package supervised
