-- purpose: whether the tables of the broker exist
-- params:
-- returns: one boolean
-- moves:
-- locks:   none
-- index:   the catalogue's own
select to_regclass('pgbroker.job') is not null
