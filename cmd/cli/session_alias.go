package cli

// Session is Invocation, for the files that other branches change now.
type Session = Invocation
