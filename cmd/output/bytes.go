package output

import "fmt"

// Bytes formats an amount of data: 512 B, 1.5 KiB, 20 GiB.
func Bytes(n uint64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	amount, unit := float64(n)/(1<<10), 0
	for amount >= 1<<10 && unit < len("KMGTPE")-1 {
		amount, unit = amount/(1<<10), unit+1
	}
	if amount < 10 {
		return fmt.Sprintf("%.1f %ciB", amount, "KMGTPE"[unit])
	}
	return fmt.Sprintf("%.0f %ciB", amount, "KMGTPE"[unit])
}
