-- purpose: whether the tables of the broker exist
-- returns: one boolean
-- locks:   none
-- index:   the catalogue's own
select to_regclass('pgbroker.job') is not null
