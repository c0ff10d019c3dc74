package mutants

import "slices"

// All are all mutants, in an order that stays the same.
func All() []Mutant {
	return slices.Concat(ofTheLeader(), ofThePlanner(), ofJudgement(), ofTheGateway(), ofDamage(), ofTraffic())
}

// Named finds a mutant.
func Named(name string) (Mutant, bool) {
	all := All()
	i := slices.IndexFunc(all, func(m Mutant) bool { return m.Name == name })
	if i < 0 {
		return Mutant{}, false
	}
	return all[i], true
}
