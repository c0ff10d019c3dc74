package output

// Dim shows what matters less.
func (s Screen) Dim(text string) string { return s.paint("2", text) }

// Alarm marks what needs attention.
func (s Screen) Alarm(text string) string { return s.paint("1;31", text) }

// Notice shows what is under way.
func (s Screen) Notice(text string) string { return s.paint("33", text) }

// Good shows what was done.
func (s Screen) Good(text string) string { return s.paint("32", text) }

func (s Screen) paint(code, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
