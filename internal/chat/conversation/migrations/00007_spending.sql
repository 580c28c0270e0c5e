-- +goose Up
-- What was counted is in the tables of package spending from now on.
INSERT INTO spending_days (org, person, day, turns, input, output, cache_read, cache_write, cost)
    SELECT org, person, day, turns, input, output, cache_read, cache_write, cost FROM talk_usage WHERE turns > 0
    ON CONFLICT (org, person, day) DO UPDATE SET turns = spending_days.turns + excluded.turns, input = spending_days.input + excluded.input,
        output = spending_days.output + excluded.output, cache_read = spending_days.cache_read + excluded.cache_read,
        cache_write = spending_days.cache_write + excluded.cache_write, cost = spending_days.cost + excluded.cost;
DELETE FROM talk_usage;

-- +goose Down
SELECT 1;
