  create table @groups as
    select @group, sum(«holder» = «value») as @held,
      max(@records) as @records, max(@trials) as @trials,
      max(@weight) as @weight
    from work.dataset«where» group by @group;
  create table @sums as
    select sum(@held) as held, sum(@records) as size,
      sum(@weight * @held) as scaled_held, sum(@weight * @records) as scaled,
      sum(mod(@records, @trials) / @trials * (1 - mod(@records, @trials) / @trials)
        * @trials * @trials / max(@trials - 1, 1)
        * @held / @records * (1 - @held / @records)) as uneven,
      sum(case when @trials < @records then @weight * @weight / 6 else 0 end) as rounding
    from @groups;
  create table @corrected as
    select (held - @stray * size) / @p as answer,
      sqrt((max((scaled_held - @stray * scaled) / @p
        * ((@p + @stray) * (1 - @p - @stray) - @stray * (1 - @stray))
        + scaled * @stray * (1 - @stray), 0) + uneven) / (@p * @p) + rounding) as standard_error
    from @sums, @constants;
  select answer, «count» as expected, standard_error,
    «error» as expected_error from @corrected;
  drop table @groups, @sums, @corrected;
