* Counts from people.dta, a randomised release made by reconpriv.
* Public columns are exact, but ill is randomised: a value was kept with probability p, else
* replaced by any of the m values, so a published count must be corrected: estimate = (n - N
* (1-p) / m) / p for n of N records.
* The rp_records records of a group rest on rp_trials independent trials, each of which
* stands for rp_weight records; programs that take rows as independent give standard errors
* that are too small, but those below are right.
* For intervals that also hold for small counts, ask reconpriv query.
* At the end, three answers are compared with those of the release.
* Run it where the data are: do people.do

version 14
use `"people.dta"', clear
scalar rp_p = 0.4
scalar rp_m = 5

* Data of one row per group, with rp_held holders as published: the corrected count.
capture program drop rp_corrected
program rp_corrected, rclass
    tempvar share part uneven rounding scaled
    scalar rp_stray = (1 - rp_p) / rp_m
    scalar rp_keep = rp_p + rp_stray
    generate double `share' = rp_held / rp_records
    generate double `part' = mod(rp_records, rp_trials) / rp_trials
    generate double `uneven' = `part' * (1 - `part') * rp_trials^2 / max(rp_trials - 1, 1) ///
        * `share' * (1 - `share')
    generate double `rounding' = cond(rp_trials < rp_records, rp_weight^2 / 6, 0)
    generate double `scaled' = rp_weight * rp_records
    quietly summarize `uneven'
    scalar rp_uneven = r(sum)
    quietly summarize `rounding'
    scalar rp_rounding = r(sum)
    quietly summarize `scaled'
    scalar rp_all = r(sum)
    quietly replace `scaled' = rp_weight * rp_held
    quietly summarize `scaled'
    scalar rp_holders = (r(sum) - rp_stray * rp_all) / rp_p
    scalar rp_drawn = rp_holders * (rp_keep * (1 - rp_keep) ///
        - rp_stray * (1 - rp_stray)) + rp_all * rp_stray * (1 - rp_stray)
    quietly summarize rp_records
    scalar rp_all = r(sum)
    quietly summarize rp_held
    return scalar count = (r(sum) - rp_stray * rp_all) / rp_p
    return scalar se = sqrt((max(rp_drawn, 0) + rp_uneven) / rp_p^2 + rp_rounding)
end

count if town == `"L'Aquila"'
assert r(N) == 1014

preserve
generate double rp_held = ill == `"Grippe à l'ancienne"'
collapse (sum) rp_held (mean) rp_records rp_trials rp_weight, by(rp_group)
rp_corrected
display "count " %18.4f r(count) ", standard error " %14.4f r(se)
assert reldif(r(count), 950.0) < 1e-06
assert reldif(r(se), 52.66587717) < 1e-06
restore

preserve
keep if town == `"L'Aquila"'
generate double rp_held = ill == `"Grippe à l'ancienne"'
collapse (sum) rp_held (mean) rp_records rp_trials rp_weight, by(rp_group)
rp_corrected
display "count " %18.4f r(count) ", standard error " %14.4f r(se)
assert reldif(r(count), 650.8) < 1e-06
assert reldif(r(se), 46.72959039) < 1e-06
restore
