package tier

import "flag"

// AtOnce sets how many tests of a package run at the same time, unless -parallel was given. It is
// for TestMain, and parses the flags.
func AtOnce(n string) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", n); err != nil {
			panic(err)
		}
	}
}
