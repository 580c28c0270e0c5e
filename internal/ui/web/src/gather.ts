// Many small things handed on together: a thousand a second must not mean a
// thousand drawings, and nobody who looks elsewhere may pile them up.

export interface Kind {
  type: string
}

/**
 * Keeps what comes until `turn` says that it is time to hand it on, and then hands on
 * everything at once. Past `most` the oldest make room; of each type among those one
 * goes along, so that lists which follow it are asked for again all the same.
 */
export class Gatherer<T extends Kind> {
  private waiting: T[] = []
  private spilled = new Map<string, T>()
  private due = false

  constructor(private readonly hand: (batch: T[], spilled: T[]) => void, private readonly turn: (go: () => void) => void, private readonly most: number) {}

  add(one: T): void {
    this.waiting.push(one)
    if (this.waiting.length >= 2 * this.most) this.spill()
    if (this.due) return
    this.due = true
    this.turn(() => this.go())
  }

  private spill(): void {
    const gone = this.waiting.splice(0, this.waiting.length - this.most)
    for (const one of gone) this.spilled.set(one.type, one)
  }

  private go(): void {
    this.due = false
    const batch = this.waiting, spilled = [...this.spilled.values()]
    this.waiting = []
    this.spilled.clear()
    this.hand(batch, spilled)
  }
}
